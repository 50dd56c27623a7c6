package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// Flags are the flag bits of an OP_MSG.
type Flags uint32

// The known flags. Of the low 16 bits an unknown one must be refused; the high ones are optional.
const (
	ChecksumPresent Flags = 1 << 0
	MoreToCome      Flags = 1 << 1
	ExhaustAllowed  Flags = 1 << 16

	requiredFlags Flags = 0xffff
)

// maxSequences is the number of document sequences that MongoDB takes in one message.
const maxSequences = 2

// CommandDepth is the nesting allowed in what is received: a stored document's and the command around it.
const CommandDepth = bson.MaxDepth + 20

// anyDepth tells a document that is only too deep from a malformed one. (Deeper ones count as malformed.)
const anyDepth = 10_000

// Message is one request. Its documents alias its buffer: see the package's comment on ownership.
type Message struct {
	Header     Header     // of the message inside, where it came compressed
	Compressor Compressor // what it came compressed with, or NotCompressed
	Flags      Flags
	Body       bson.Document
	Sequences  []Sequence
	// Namespace is "db.collection" of an OP_QUERY, else empty.
	Namespace string

	buf []byte // the whole message inside, header included
}

// Sequence is one kind 1 section.
type Sequence struct {
	Name      string
	Documents []bson.Document
}

// Parse reads the sections and validates every document. An error that is a *mongoerr.Error can be answered; after
// any other the connection is closed.
func (m *Message) Parse() error {
	switch m.Header.OpCode {
	case OpMsg:
		return m.parseMsg()
	case OpQuery:
		return m.parseQuery()
	default:
		return fmt.Errorf("%w: %d", ErrOpCode, m.Header.OpCode)
	}
}

func (m *Message) parseMsg() error {
	b := m.buf[HeaderSize:]
	if len(b) < 4 {
		return fmt.Errorf("%w: no flags", ErrTruncated)
	}
	m.Flags = Flags(binary.LittleEndian.Uint32(b))
	b = b[4:]
	if m.Flags&ChecksumPresent != 0 {
		var err error
		if b, err = m.verifyChecksum(b); err != nil {
			return err
		}
	}
	if unknown := m.Flags & requiredFlags &^ (ChecksumPresent | MoreToCome); unknown != 0 {
		return mongoerr.New(mongoerr.IllegalOpMsgFlag, "Message contains illegal flags value: 0b%032b", uint32(m.Flags))
	}
	hasBody := false
	for len(b) > 0 {
		kind := b[0]
		var err error
		switch kind {
		case 0:
			if hasBody {
				return mongoerr.New(40430, "Multiple body sections in message")
			}
			hasBody = true
			m.Body, b, err = nextDocument(b[1:])
		case 1:
			b, err = m.parseSequence(b[1:])
		default:
			return fmt.Errorf("%w: kind %d", ErrSection, kind)
		}
		if err != nil {
			return err
		}
	}
	if !hasBody {
		return mongoerr.New(40587, "OP_MSG messages must have a body")
	}
	return m.checkContent()
}

// verifyChecksum takes the checksum off b, the message's bytes after its flags.
func (m *Message) verifyChecksum(b []byte) ([]byte, error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("%w: no checksum", ErrTruncated)
	}
	end := len(m.buf) - 4
	if crc32.Checksum(m.buf[:end], castagnoli) != binary.LittleEndian.Uint32(m.buf[end:]) {
		return nil, ErrChecksum
	}
	return b[: len(b)-4 : len(b)-4], nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// parseSequence reads the kind 1 section at the start of b, its kind byte taken off.
func (m *Message) parseSequence(b []byte) (rest []byte, err error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("%w: no size", ErrSection)
	}
	size := int64(int32(binary.LittleEndian.Uint32(b)))
	if size < 4 || size > int64(len(b)) {
		return nil, fmt.Errorf("%w: size %d in %d bytes", ErrSection, size, len(b))
	}
	section, rest := b[4:size], b[size:]
	end := bytes.IndexByte(section, 0)
	if end < 0 {
		return nil, fmt.Errorf("%w: identifier without an end", ErrSection)
	}
	if len(m.Sequences) == maxSequences {
		return nil, mongoerr.New(mongoerr.TooManyDocumentSequences, "Too many document sequences in OP_MSG")
	}
	name := sequenceName(section[:end])
	for i := range m.Sequences {
		if m.Sequences[i].Name == name {
			return nil, mongoerr.New(40431, "Duplicate document sequence: %s", name)
		}
	}
	seq := m.addSequence(name)
	for section = section[end+1:]; len(section) > 0; {
		var doc bson.Document
		if doc, section, err = nextDocument(section); err != nil {
			return nil, err
		}
		seq.Documents = append(seq.Documents, doc)
	}
	return rest, nil
}

// addSequence appends a sequence, with the document list that an earlier message left in its place.
func (m *Message) addSequence(name string) *Sequence {
	n := len(m.Sequences)
	if n < cap(m.Sequences) {
		m.Sequences = m.Sequences[:n+1]
	} else {
		m.Sequences = append(m.Sequences, Sequence{})
	}
	seq := &m.Sequences[n]
	seq.Name, seq.Documents = name, seq.Documents[:0]
	return seq
}

// sequenceName turns an identifier into a string, without allocating for the ones that drivers send.
func sequenceName(b []byte) string {
	switch string(b) {
	case "documents":
		return "documents"
	case "updates":
		return "updates"
	case "deletes":
		return "deletes"
	}
	return string(b)
}

// nextDocument cuts the document at the start of b off.
func nextDocument(b []byte) (doc bson.Document, rest []byte, err error) {
	if len(b) < 5 {
		return nil, nil, fmt.Errorf("%w: %d bytes", ErrDocument, len(b))
	}
	n := int64(int32(binary.LittleEndian.Uint32(b)))
	if n < 5 || n > int64(len(b)) {
		return nil, nil, fmt.Errorf("%w: size %d in %d bytes", ErrDocument, n, len(b))
	}
	return b[:n:n], b[n:], nil
}

// checkContent validates the documents, now that all sections are known to be well framed, and refuses a field that
// stands both in the body and in a sequence.
func (m *Message) checkContent() error {
	if err := validate(m.Body); err != nil {
		return err
	}
	for i := range m.Sequences {
		seq := &m.Sequences[i]
		if _, twice := bson.Get(m.Body, seq.Name); twice {
			return mongoerr.New(40433, "Duplicate field between body and document sequence %s", seq.Name)
		}
		for _, doc := range seq.Documents {
			if err := validate(doc); err != nil {
				return err
			}
		}
	}
	return nil
}

func validate(doc bson.Document) error {
	if len(doc) > bson.MaxInternalSize {
		return mongoerr.New(mongoerr.BSONObjectTooLarge, "BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d(16MB)",
			len(doc), len(doc), bson.MaxInternalSize)
	}
	err := bson.Validate(doc, CommandDepth)
	if err == nil {
		return nil
	}
	if bson.Validate(doc, anyDepth) == nil {
		return mongoerr.New(mongoerr.Overflow, "BSONObj exceeded maximum nested object depth: %d", CommandDepth)
	}
	return fmt.Errorf("%w: %w", ErrDocument, err)
}
