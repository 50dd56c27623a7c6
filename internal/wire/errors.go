package wire

import "errors"

// The ways in which bytes can be wrong. After any of them the stream can't be trusted, so the connection is closed.
// What is wrong only inside a well-framed message (a document nested too deep, an unknown required flag) is a
// *mongoerr.Error instead, which can be answered.
var (
	ErrTruncated   = errors.New("message cut short")
	ErrLength      = errors.New("bad message length")
	ErrOpCode      = errors.New("unknown opcode")
	ErrSection     = errors.New("bad section")
	ErrChecksum    = errors.New("checksum does not match")
	ErrCompression = errors.New("bad compressed message")
	ErrDocument    = errors.New("malformed document")
)
