package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"oxbow/internal/backend"
	"oxbow/internal/bson"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

var errMalformed = errors.New("malformed reply")

// exchange sends a command as one OP_MSG and reads the reply to it
// (https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/#op_msg).
func (l *link) exchange(conn *mnet.Connection, req *backend.Request) (bson.Document, error) {
	id := wiremessage.NextRequestID()
	send := l.send
	if l.compresses(conn) {
		send = func(req *backend.Request, id int32) error { return l.sendCompressed(conn, req, id) }
	}
	if err := send(req, id); err != nil {
		return nil, err
	}
	in, err := l.receive()
	if err != nil {
		return nil, err
	}
	return parseReply(in, id)
}

// messageHead is what stands before the body: header, flags and the kind byte of one section.
const messageHead = headerSize + 4 + 1

const headerSize = 16

// messageSize is the length of a command's message.
func messageSize(req *backend.Request) int {
	n := messageHead + len(req.Body)
	for i := range req.Sequences {
		n += 1 + sequenceSize(&req.Sequences[i])
	}
	return n
}

// sequenceSize is what a sequence tells as its size: all but its kind byte.
func sequenceSize(s *backend.Sequence) int {
	n := 4 + len(s.Name) + 1
	for _, doc := range s.Documents {
		n += len(doc)
	}
	return n
}

// pieces are the pieces of a message on their way: small ones are put together, large ones go out as they are, so that no message is copied whole.
type pieces struct {
	to  io.Writer
	buf []byte
	err error
}

// writeAhead is how much is put together before it is written, in bytes.
const writeAhead = 64 << 10

func (p *pieces) add(b []byte) {
	if len(p.buf)+len(b) > writeAhead {
		p.flush()
	}
	if len(b) <= writeAhead {
		p.buf = append(p.buf, b...)
	} else if p.err == nil {
		_, p.err = p.to.Write(b)
	}
}

func (p *pieces) flush() {
	if p.err == nil && len(p.buf) > 0 {
		_, p.err = p.to.Write(p.buf)
	}
	p.buf = p.buf[:0]
}

// message adds the OP_MSG of a command: its body, then its document sequences.
func (p *pieces) message(req *backend.Request, id int32) {
	b := binary.LittleEndian.AppendUint32(p.buf, uint32(messageSize(req)))
	b = binary.LittleEndian.AppendUint32(b, uint32(id))
	b = binary.LittleEndian.AppendUint32(b, 0) // answers nothing
	b = binary.LittleEndian.AppendUint32(b, uint32(wiremessage.OpMsg))
	b = binary.LittleEndian.AppendUint32(b, 0) // no flags
	p.buf = append(b, byte(wiremessage.SingleDocument))
	p.add(req.Body)
	for i := range req.Sequences {
		s := &req.Sequences[i]
		b := append(p.buf, byte(wiremessage.DocumentSequence))
		b = binary.LittleEndian.AppendUint32(b, uint32(sequenceSize(s)))
		p.buf = append(append(b, s.Name...), 0)
		for _, doc := range s.Documents {
			p.add(doc)
		}
	}
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

func takeBuffer() *[]byte  { return buffers.Get().(*[]byte) }
func giveBuffer(b *[]byte) { buffers.Put(b) }

// parseReply returns the document of an OP_MSG that answers request id.
func parseReply(in []byte, id int32) (bson.Document, error) {
	length, _, to, op, rest, ok := wiremessage.ReadHeader(in)
	if !ok || int(length) > len(in) || length < 16 {
		return nil, errMalformed
	}
	if to != id {
		return nil, fmt.Errorf("%w: it answers request %d instead of %d", errMalformed, to, id)
	}
	rest = rest[:length-16]
	if op == wiremessage.OpCompressed {
		var err error
		if op, rest, err = expand(rest); err != nil {
			return nil, err
		}
	}
	if op != wiremessage.OpMsg {
		return nil, fmt.Errorf("%w: op code %d", errMalformed, op)
	}
	_, rest, ok = wiremessage.ReadMsgFlags(rest)
	if !ok {
		return nil, errMalformed
	}
	kind, rest, ok := wiremessage.ReadMsgSectionType(rest)
	if !ok || kind != wiremessage.SingleDocument {
		return nil, errMalformed
	}
	doc, _, ok := wiremessage.ReadMsgSectionSingleDocument(rest)
	if !ok {
		return nil, errMalformed
	}
	if err := bson.Validate(doc, replyDepth); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return doc, nil
}

// replyDepth allows for the levels that a reply puts around a document.
const replyDepth = bson.MaxDepth + 10

// expand undoes OP_COMPRESSED.
func expand(in []byte) (wiremessage.OpCode, []byte, error) {
	op, in, ok := wiremessage.ReadCompressedOriginalOpCode(in)
	if !ok {
		return 0, nil, errMalformed
	}
	size, in, ok := wiremessage.ReadCompressedUncompressedSize(in)
	if !ok || size < 0 || size > maxMessage {
		return 0, nil, errMalformed
	}
	compressor, in, ok := wiremessage.ReadCompressedCompressorID(in)
	if !ok {
		return 0, nil, errMalformed
	}
	out, err := driver.DecompressPayload(in, driver.CompressionOpts{Compressor: compressor, UncompressedSize: size})
	if err != nil {
		return 0, nil, fmt.Errorf("expand the reply: %w", err)
	}
	return op, out, nil
}

// maxMessage is the largest message, maxMessageSizeBytes of MongoDB's hello.
const maxMessage = 48_000_000
