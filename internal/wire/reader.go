package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// readAhead is the buffer of a Reader, in bytes: what one idle connection costs here. Most commands fit, so they come
// with one read.
const readAhead = 512

// A message larger than smallBuffer starts with that much and grows as its bytes arrive. Buffers up to keptBuffer are used again.
const (
	smallBuffer   = 64 << 10
	keptBuffer    = 4 << 20
	keptDocuments = 16 << 10 // documents listed in a Message that is used again
)

// Reader reads messages from a stream.
type Reader struct {
	in   *bufio.Reader
	room func(n int64) error
}

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, readAhead), room: func(int64) error { return nil }}
}

// Limit has room asked before a message's memory grows by n bytes, and told with a negative n what is free again before the message is released.
// It may wait. Its error is Next's.
func (r *Reader) Limit(room func(n int64) error) { r.room = room }

// Wait blocks until the first byte of a message is there. It returns io.EOF where the stream ends instead.
func (r *Reader) Wait() error {
	_, err := r.in.Peek(1)
	return err
}

// Complete reports whether a whole message has arrived already, so that Next will not block.
func (r *Reader) Complete() bool {
	n := r.in.Buffered()
	if n < HeaderSize {
		return false
	}
	b, err := r.in.Peek(4)
	return err == nil && int64(int32(binary.LittleEndian.Uint32(b))) <= int64(n)
}

// Next reads one message, decompressed but not parsed. The error is io.EOF where the stream ends between messages, a reader's own
// error, or one of this package's, after which the stream is of no use. On an error the message is nil and nothing is to be released.
func (r *Reader) Next() (*Message, error) {
	head, err := r.in.Peek(HeaderSize)
	if err != nil {
		if len(head) == 0 {
			return nil, err
		}
		return nil, truncated(err)
	}
	h, err := ParseHeader(head)
	if err != nil {
		return nil, err
	}
	m := takeMessage(int(h.Length))
	m.Header = h
	m.buf = append(m.buf[:0], head...)
	r.in.Discard(HeaderSize) // of what is buffered, so it doesn't fail
	if err := m.fill(r.in, int(h.Length), r.room); err != nil {
		m.Release()
		return nil, truncated(err)
	}
	if h.OpCode == OpCompressed {
		if err := m.decompress(r.room); err != nil {
			m.Release()
			return nil, err
		}
	}
	return m, nil
}

func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrTruncated
	}
	return fmt.Errorf("read message: %w", err)
}

// fill reads the rest of a message of the given length. The buffer at most doubles at a time, so that a length that lies costs
// no more than twice what was sent.
func (m *Message) fill(in io.Reader, length int, room func(int64) error) error {
	for len(m.buf) < length {
		have := len(m.buf)
		n := min(length-have, max(have, smallBuffer))
		if err := room(int64(n)); err != nil {
			return err
		}
		m.buf = slices.Grow(m.buf, n)[:have+n]
		if n, err := io.ReadFull(in, m.buf[have:]); err != nil {
			m.buf = m.buf[:have+n]
			return err
		}
	}
	return nil
}

var (
	smallMessages = sync.Pool{New: func() any { return &Message{} }}
	largeMessages = sync.Pool{New: func() any { return &Message{} }}
)

func takeMessage(length int) *Message {
	pool := &smallMessages
	if length > smallBuffer {
		pool = &largeMessages
	}
	m := pool.Get().(*Message)
	m.reset()
	return m
}

// reset forgets what an earlier message left, its memory excepted.
func (m *Message) reset() {
	*m = Message{Compressor: NotCompressed, Sequences: m.Sequences[:0], buf: m.buf[:0]}
}

// Release gives the message's memory back. Neither it nor any of its documents may be used afterwards.
func (m *Message) Release() {
	if cap(m.buf) > keptBuffer {
		m.buf = nil
	}
	large := cap(m.buf) > 2*smallBuffer
	for i := range m.Sequences[:cap(m.Sequences)] {
		seq := &m.Sequences[:cap(m.Sequences)][i]
		if cap(seq.Documents) > keptDocuments {
			seq.Documents = nil
		}
		large = large || cap(seq.Documents) > 1024
		clear(seq.Documents[:cap(seq.Documents)])
	}
	m.reset()
	if large {
		largeMessages.Put(m)
	} else {
		smallMessages.Put(m)
	}
}
