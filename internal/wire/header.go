package wire

import (
	"encoding/binary"
	"fmt"
)

// Sizes in bytes. MaxMessageSize is the maxMessageSizeBytes of hello.
const (
	MaxMessageSize = 48_000_000
	HeaderSize     = 16
)

// OpCode is the kind of a message.
type OpCode int32

// The opcodes in use; MongoDB removed the other ones in 5.1.
const (
	OpReply      OpCode = 1
	OpQuery      OpCode = 2004
	OpCompressed OpCode = 2012
	OpMsg        OpCode = 2013
)

// Header opens every message.
type Header struct {
	Length     int32 // of the whole message, the header's 16 bytes included
	RequestID  int32
	ResponseTo int32
	OpCode     OpCode
}

// ParseHeader reads the header at the start of b. The error wraps ErrTruncated, ErrLength or ErrOpCode.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderSize {
		return Header{}, fmt.Errorf("%w: %d bytes of a header", ErrTruncated, len(b))
	}
	h := Header{
		Length:     int32(binary.LittleEndian.Uint32(b)),
		RequestID:  int32(binary.LittleEndian.Uint32(b[4:])),
		ResponseTo: int32(binary.LittleEndian.Uint32(b[8:])),
		OpCode:     OpCode(binary.LittleEndian.Uint32(b[12:])),
	}
	if h.Length < HeaderSize || h.Length > MaxMessageSize {
		return h, fmt.Errorf("%w: %d", ErrLength, h.Length)
	}
	if h.OpCode != OpMsg && h.OpCode != OpQuery && h.OpCode != OpCompressed {
		return h, fmt.Errorf("%w: %d", ErrOpCode, h.OpCode)
	}
	return h, nil
}

func putHeader(b []byte, h Header) {
	binary.LittleEndian.PutUint32(b, uint32(h.Length))
	binary.LittleEndian.PutUint32(b[4:], uint32(h.RequestID))
	binary.LittleEndian.PutUint32(b[8:], uint32(h.ResponseTo))
	binary.LittleEndian.PutUint32(b[12:], uint32(h.OpCode))
}
