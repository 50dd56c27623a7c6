package remote

import (
	"context"
	"errors"
	"fmt"

	"oxbow/internal/backend"
	"oxbow/internal/bson"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

var errMalformed = errors.New("malformed reply")

// roundTrip sends a command as one OP_MSG and reads the reply to it
// (https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/#op_msg).
func roundTrip(ctx context.Context, conn *mnet.Connection, req *backend.Request) (bson.Document, error) {
	msg, id := appendMessage(nil, req)
	if conn.Compressor != nil {
		compressed, err := conn.CompressWireMessage(msg, nil)
		if err != nil {
			return nil, fmt.Errorf("compress the command: %w", err)
		}
		msg = compressed
	}
	if err := conn.Write(ctx, msg); err != nil {
		return nil, err
	}
	in, err := conn.Read(ctx)
	if err != nil {
		return nil, err
	}
	return parseReply(in, id)
}

// appendMessage appends the OP_MSG of a command: its body, then its document sequences.
func appendMessage(dst []byte, req *backend.Request) ([]byte, int32) {
	id := wiremessage.NextRequestID()
	at, dst := wiremessage.AppendHeaderStart(dst, id, 0, wiremessage.OpMsg)
	dst = wiremessage.AppendMsgFlags(dst, 0)
	dst = wiremessage.AppendMsgSectionType(dst, wiremessage.SingleDocument)
	dst = append(dst, req.Body...)
	for _, s := range req.Sequences {
		dst = wiremessage.AppendMsgSectionType(dst, wiremessage.DocumentSequence)
		var length int32
		length, dst = bsoncore.ReserveLength(dst)
		dst = append(dst, s.Name...)
		dst = append(dst, 0)
		for _, doc := range s.Documents {
			dst = append(dst, doc...)
		}
		dst = bsoncore.UpdateLength(dst, length, int32(len(dst))-length)
	}
	return bsoncore.UpdateLength(dst, at, int32(len(dst))-at), id
}

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
