package wire

import (
	"bytes"
	"encoding/binary"
	"testing"

	"oxbow/internal/bson"
)

func seeds() [][]byte {
	plain := message(OpMsg, flagBits(0), section0(ping()), section1("documents", ping(), ping()))
	all := [][]byte{
		plain,
		withChecksum(message(OpMsg, flagBits(ChecksumPresent), section0(ping()))),
		message(OpQuery, flagBits(0), []byte("admin.$cmd\x00"), make([]byte, 8), ping()),
		wrapped(OpMsg, len(plain)-HeaderSize, Noop, plain[HeaderSize:]),
		plain[:20],
	}
	long := message(OpMsg, flagBits(0), section0(ping()), section1("documents", ping(), ping(), ping(), ping(), ping(), ping()))
	for _, c := range []Compressor{Snappy, Zlib, Zstd} {
		if b, ok := AppendCompressed(nil, c, long); ok {
			all = append(all, b)
		}
	}
	return all
}

// FuzzReadMessage: whatever the bytes, reading ends, and what it yields is within the input and valid.
func FuzzReadMessage(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(bytes.NewReader(b))
		for {
			m, err := r.Next()
			if err != nil {
				return
			}
			if m.Parse() == nil {
				check(t, m)
			}
			m.Release()
		}
	})
}

func check(t *testing.T, m *Message) {
	docs := []bson.Document{m.Body}
	for _, s := range m.Sequences {
		docs = append(docs, s.Documents...)
	}
	total := 0
	for _, d := range docs {
		if err := bson.Validate(d, CommandDepth); err != nil {
			t.Fatalf("an invalid document came through: %v", err)
		}
		total += len(d)
	}
	if total > int(m.Header.Length) {
		t.Fatalf("%d bytes of documents in a message of %d", total, m.Header.Length)
	}
}

// FuzzDecompress: output has exactly the claimed size, and compressing it again and expanding that gives it back.
func FuzzDecompress(f *testing.F) {
	for _, s := range seeds() {
		if OpCode(binary.LittleEndian.Uint32(s[12:])) == OpCompressed && len(s) > compressedHead {
			f.Add(s[compressedHead-1], s[compressedHead:], int(binary.LittleEndian.Uint32(s[HeaderSize+4:])))
		}
	}
	f.Fuzz(func(t *testing.T, compressor byte, in []byte, size int) {
		if size < 0 || size > 1<<20 {
			return
		}
		out, err := (&expansion{in: in, size: size, room: anyRoom}).expand(make([]byte, HeaderSize), Compressor(compressor))
		if err != nil {
			return
		}
		if len(out) != HeaderSize+size {
			t.Fatalf("%d bytes where %d were claimed", len(out)-HeaderSize, size)
		}
		putHeader(out, Header{Length: int32(len(out)), OpCode: OpMsg})
		again, smaller := AppendCompressed(nil, Compressor(compressor), out)
		if !smaller {
			return
		}
		back, err := (&expansion{in: again[compressedHead:], size: size, room: anyRoom}).expand(make([]byte, HeaderSize), Compressor(compressor))
		if err != nil || !bytes.Equal(back[HeaderSize:], out[HeaderSize:]) {
			t.Fatalf("compressed and expanded again: %v", err)
		}
	})
}

func anyRoom(int64) error { return nil }
