package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"oxbow/internal/bson"
)

// The response flags of an OP_REPLY.
const (
	replyQueryFailure = 1 << 1
	replyAwaitCapable = 1 << 3
)

// parseQuery reads an OP_QUERY, which drivers send as their first handshake. A query wrapped in $query, as old
// clients do to add a read preference, is unwrapped.
func (m *Message) parseQuery() error {
	b := m.buf[HeaderSize:]
	if len(b) < 4 {
		return fmt.Errorf("%w: no flags", ErrTruncated)
	}
	b = b[4:]
	end := bytes.IndexByte(b, 0)
	if end < 0 {
		return fmt.Errorf("%w: namespace without an end", ErrSection)
	}
	m.Namespace = string(b[:end])
	b = b[end+1:]
	if len(b) < 8 {
		return fmt.Errorf("%w: no numbers to skip and return", ErrTruncated)
	}
	body, rest, err := nextDocument(b[8:])
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		if _, rest, err = nextDocument(rest); err != nil {
			return err
		}
	}
	if len(rest) > 0 {
		return fmt.Errorf("%w: %d bytes too many", ErrLength, len(rest))
	}
	if err := validate(body); err != nil {
		return err
	}
	if key, v, _ := bson.First(body); key == "$query" || key == "query" {
		if inner, ok := v.DocumentOK(); ok {
			body = inner
		}
	}
	m.Body = body
	return nil
}

// AppendReply appends an OP_REPLY with one document.
func AppendReply(dst []byte, requestID, responseTo int32, doc bson.Document, failed bool) []byte {
	start := len(dst)
	flags := uint32(replyAwaitCapable)
	if failed {
		flags |= replyQueryFailure
	}
	dst = append(dst, make([]byte, HeaderSize)...)
	dst = binary.LittleEndian.AppendUint32(dst, flags)
	dst = binary.LittleEndian.AppendUint64(dst, 0) // cursor id
	dst = binary.LittleEndian.AppendUint32(dst, 0) // starting from
	dst = binary.LittleEndian.AppendUint32(dst, 1) // number returned
	dst = append(dst, doc...)
	putHeader(dst[start:], Header{
		Length: int32(len(dst) - start), RequestID: requestID, ResponseTo: responseTo, OpCode: OpReply,
	})
	return dst
}
