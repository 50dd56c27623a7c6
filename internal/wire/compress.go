package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// Compressor is the id of a compression in an OP_COMPRESSED.
type Compressor uint8

// The compressors of the protocol. NotCompressed marks a message that did not come as OP_COMPRESSED at all.
const (
	Noop          Compressor = 0
	Snappy        Compressor = 1
	Zlib          Compressor = 2
	Zstd          Compressor = 3
	NotCompressed Compressor = 255
)

// compressedHead is what stands before the compressed bytes: header, original opcode, uncompressed size, compressor.
const compressedHead = HeaderSize + 4 + 4 + 1

// The most that a byte of input can become: deflate's is 1032 (RFC 1951's longest match in its shortest code), snappy's 64 in 3.
const (
	zlibRatio   = 1032
	snappyRatio = 22
)

// decompress replaces an OP_COMPRESSED by the message inside.
func (m *Message) decompress(room func(int64) error) error {
	if len(m.buf) < compressedHead {
		return fmt.Errorf("%w: %d bytes", ErrCompression, len(m.buf))
	}
	opCode := OpCode(binary.LittleEndian.Uint32(m.buf[HeaderSize:]))
	size := int64(int32(binary.LittleEndian.Uint32(m.buf[HeaderSize+4:])))
	compressor := Compressor(m.buf[compressedHead-1])
	if size < 0 || size > MaxMessageSize-HeaderSize {
		return fmt.Errorf("%w: uncompressed size %d", ErrCompression, size)
	}
	if opCode != OpMsg && opCode != OpQuery {
		return fmt.Errorf("%w: opcode %d inside", ErrCompression, opCode)
	}
	inner := takeMessage(int(size) + HeaderSize)
	defer inner.Release()
	inner.buf = append(inner.buf[:0], make([]byte, HeaderSize)...)
	x := expansion{in: m.buf[compressedHead:], size: int(size), room: room}
	out, err := x.expand(inner.buf, compressor)
	if err != nil {
		return err
	}
	if err := room(-int64(len(m.buf))); err != nil {
		return err
	}
	inner.buf = out
	m.Compressor = compressor
	m.Header.Length, m.Header.OpCode = int32(size)+HeaderSize, opCode
	putHeader(inner.buf, m.Header)
	m.buf, inner.buf = inner.buf, m.buf
	return nil
}

// expansion is the decompression of one message.
type expansion struct {
	in   []byte
	size int               // claimed, of the output
	room func(int64) error // asked before the output's memory grows
}

// noRoom is an error of room, which says nothing about the bytes.
type noRoom struct{ error }

func (e noRoom) Unwrap() error { return e.error }

// grow makes room for n bytes behind dst.
func (x *expansion) grow(dst []byte, n int) ([]byte, error) {
	if err := x.room(int64(n)); err != nil {
		return nil, noRoom{err}
	}
	return slices.Grow(dst, n), nil
}

// expand appends exactly size bytes of decompressed output to dst, or fails with ErrCompression, or with the error of room.
func (x *expansion) expand(dst []byte, c Compressor) ([]byte, error) {
	start := len(dst)
	var err error
	switch c {
	case Noop:
		if dst, err = x.grow(dst, len(x.in)); err == nil {
			dst = append(dst, x.in...)
		}
	case Snappy:
		dst, err = x.snappy(dst)
	case Zlib:
		dst, err = x.zlib(dst)
	case Zstd:
		dst, err = x.zstd(dst)
	default:
		err = fmt.Errorf("compressor %d", c)
	}
	var full noRoom
	if errors.As(err, &full) {
		return nil, full.error
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCompression, err)
	}
	if len(dst)-start != x.size {
		return nil, fmt.Errorf("%w: %d bytes where %d are claimed", ErrCompression, len(dst)-start, x.size)
	}
	return dst, nil
}

var errSize = errors.New("size does not fit the claimed one")

func (x *expansion) snappy(dst []byte) ([]byte, error) {
	n, err := snappy.DecodedLen(x.in)
	if err != nil {
		return nil, err
	}
	if n != x.size || n > snappyRatio*len(x.in) {
		return nil, errSize
	}
	start := len(dst)
	if dst, err = x.grow(dst, n); err != nil {
		return nil, err
	}
	// snappy decodes in place where there is room, and there is: n bytes.
	out, err := snappy.Decode(dst[start:start+n], x.in)
	if err != nil {
		return nil, err
	}
	return dst[:start+len(out)], nil
}

var zlibReaders sync.Pool

func (x *expansion) zlib(dst []byte) ([]byte, error) {
	if x.size > zlibRatio*len(x.in) {
		return nil, errSize
	}
	src := bytes.NewReader(x.in)
	r, ok := zlibReaders.Get().(io.ReadCloser)
	var err error
	if ok {
		err = r.(zlib.Resetter).Reset(src, nil)
	} else {
		r, err = zlib.NewReader(src)
	}
	if err != nil {
		return nil, err
	}
	defer zlibReaders.Put(r)
	want, allowed := len(dst)+x.size, len(dst)
	for len(dst) < want {
		if len(dst) == allowed {
			n := min(want-len(dst), max(len(dst), smallBuffer))
			if dst, err = x.grow(dst, n); err != nil {
				return nil, err
			}
			allowed += n
		}
		n, err := r.Read(dst[len(dst):allowed])
		dst = dst[:len(dst)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	var more [1]byte
	if n, err := io.ReadFull(r, more[:]); n > 0 {
		return nil, errSize
	} else if err != io.EOF {
		return nil, err
	}
	return dst, nil
}

// zstd first gives the decoder as much as honest input needs, and more only when that was not enough: the format
// has no bound on its ratio.
func (x *expansion) zstd(dst []byte) ([]byte, error) {
	d, err := zstdDecoder()
	if err != nil {
		return nil, err
	}
	allowed := 0
	for room := min(x.size, max(smallBuffer, 64*len(x.in))); ; room = min(x.size, 4*room) {
		if err := x.room(int64(room - allowed)); err != nil {
			return nil, noRoom{err}
		}
		allowed = room
		grown := slices.Grow(dst, room)
		out, err := d.DecodeAll(x.in, grown[:len(dst):len(dst)+room])
		if errors.Is(err, zstd.ErrDecoderSizeExceeded) && room < x.size {
			continue
		}
		return out, err
	}
}

var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(MaxMessageSize), zstd.WithDecodeAllCapLimit(true))
})

var zstdEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(1<<20))
})

var zlibWriters = sync.Pool{New: func() any { return zlib.NewWriter(io.Discard) }}

// AppendCompressed appends msg, a whole message, to dst as an OP_COMPRESSED, and reports whether that is smaller; if not,
// dst is unchanged and the message should be sent as it is.
func AppendCompressed(dst []byte, c Compressor, msg []byte) ([]byte, bool) {
	start := len(dst)
	dst = append(dst, make([]byte, compressedHead)...)
	in := msg[HeaderSize:]
	switch c {
	case Snappy:
		n := snappy.MaxEncodedLen(len(in))
		dst = slices.Grow(dst, n)
		at := len(dst)
		dst = dst[:at+len(snappy.Encode(dst[at:at+n], in))]
	case Zlib:
		w := zlibWriters.Get().(*zlib.Writer)
		defer zlibWriters.Put(w)
		out := bytes.NewBuffer(dst)
		w.Reset(out)
		if _, err := w.Write(in); err != nil {
			return dst[:start], false
		}
		if err := w.Close(); err != nil {
			return dst[:start], false
		}
		dst = out.Bytes()
	case Zstd:
		e, err := zstdEncoder()
		if err != nil {
			return dst[:start], false
		}
		dst = e.EncodeAll(in, dst)
	default:
		return dst[:start], false
	}
	length := len(dst) - start
	if length >= len(msg) {
		return dst[:start], false
	}
	out := dst[start:]
	copy(out, msg[:HeaderSize])
	binary.LittleEndian.PutUint32(out, uint32(length))
	copy(out[HeaderSize:], msg[12:16])
	binary.LittleEndian.PutUint32(out[12:], uint32(OpCompressed))
	binary.LittleEndian.PutUint32(out[HeaderSize+4:], uint32(len(in)))
	out[compressedHead-1] = byte(c)
	return dst, true
}
