package server

import (
	"sync"

	"oxbow/internal/bson"
	"oxbow/internal/command"
	"oxbow/internal/mongoerr"
	"oxbow/internal/wire"
)

// keptReply is the largest reply buffer that is used again, in bytes.
const keptReply = 1 << 20

// joined is the largest answer of a backend that is copied behind its head, in bytes: writing one piece costs less than writing two.
const joined = 16 << 10

var buffers = sync.Pool{New: func() any { return new([]byte) }}

func takeBuffer() *[]byte { return buffers.Get().(*[]byte) }

func giveBuffer(b *[]byte) {
	if cap(*b) <= keptReply {
		*b = (*b)[:0]
		buffers.Put(b)
	}
}

// write sends the reply as the client asked: as an OP_REPLY to an OP_QUERY, compressed or with a checksum where the request was.
func (c *conn) write(m *wire.Message, responseTo int32, more bool) error {
	c.limit()
	id := c.server.replyID.Add(1)
	c.lastReply = id
	if m.Header.OpCode == wire.OpQuery {
		doc := c.document()
		_, isError := bson.Get(doc, "errmsg")
		return c.send(nil, wire.AppendReply(nil, id, responseTo, doc, isError))
	}
	var flags wire.Flags
	if more {
		flags |= wire.MoreToCome
	}
	compressed := m.Compressor != wire.NotCompressed
	if m.Flags&wire.ChecksumPresent != 0 && !compressed {
		flags |= wire.ChecksumPresent
	}
	r := &c.reply
	if r.Document != nil && (compressed || flags&wire.ChecksumPresent != 0 || len(r.Document) <= joined) {
		r.Elements = append(r.Elements[:wire.ReplyRoom], r.Document...)
		r.Document = nil
	}
	if r.Document != nil {
		return c.send(wire.ReplyHead(r.Elements, id, responseTo, flags, len(r.Document)), r.Document)
	}
	r.Elements = wire.FinishReply(r.Elements, id, responseTo, flags)
	if compressed {
		return c.sendCompressed(m.Compressor, r.Elements)
	}
	return c.send(nil, r.Elements)
}

// document is the reply's document.
func (c *conn) document() bson.Document {
	if c.reply.Document != nil {
		return c.reply.Document
	}
	return c.reply.Elements[wire.ReplyRoom:]
}

// limit replaces a reply that no client would take, and one that there is no memory for. What a write has to say is kept all the same: an
// error would say that it did not happen.
func (c *conn) limit() {
	var err error
	n := len(c.document())
	more := int64(n) - c.replies.Used()
	switch {
	case n > bson.MaxInternalSize:
		err = mongoerr.New(mongoerr.BSONObjectTooLarge, "the reply has %d bytes, more than a document can have (%d)", n, bson.MaxInternalSize)
	case more <= 0:
	case c.request.Writes:
		c.replies.Force(more)
	default:
		err = c.replies.Grow(more)
	}
	if err != nil {
		c.replies.Close()
		c.reply = command.Reply{Elements: command.ErrorReply(c.reply.Elements[:wire.ReplyRoom], err)}
	}
}

func (c *conn) sendCompressed(compressor wire.Compressor, message []byte) error {
	if !c.replies.Try(int64(len(message))) {
		return c.send(nil, message)
	}
	buf := takeBuffer()
	defer giveBuffer(buf)
	out, smaller := wire.AppendCompressed((*buf)[:0], compressor, message)
	*buf = out
	if !smaller {
		return c.send(nil, message)
	}
	c.server.counters.BytesOut.Add(int64(len(message) - len(out)))
	return c.send(nil, out)
}

// send writes a message, which lies in one piece or in two.
func (c *conn) send(head, rest []byte) error {
	c.server.counters.BytesOut.Add(int64(len(head) + len(rest)))
	return c.stream.write(head, rest)
}

// writeChunk is the most that is written under one deadline, in bytes.
const writeChunk = 1 << 20

// write sends head and rest with as few calls as it can: each chunk has the stall timeout to get through.
func (s *stream) write(head, rest []byte) error {
	for {
		n := min(len(rest), writeChunk)
		if err := s.writeSome(head, rest[:n]); err != nil {
			return err
		}
		if rest = rest[n:]; len(rest) == 0 {
			return nil
		}
		head = nil
	}
}

func (s *stream) writeSome(head, rest []byte) error {
	if err := s.allowWrite(); err != nil {
		return err
	}
	var n int64
	var err error
	if len(head) == 0 {
		var m int
		m, err = s.nc.Write(rest)
		n = int64(m)
	} else {
		s.buffers = append(s.buffers[:0], head, rest)
		pieces := s.buffers
		n, err = pieces.WriteTo(s.nc)
		clear(s.buffers[:cap(s.buffers)])
	}
	s.counters.PhysicalOut.Add(n)
	return stalled(err)
}
