package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"pgregory.net/rapid"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// section0 is a kind 0 section.
func section0(doc bson.Document) []byte { return append([]byte{0}, doc...) }

// section1 is a kind 1 section.
func section1(name string, docs ...bson.Document) []byte {
	content := append([]byte(name), 0)
	for _, d := range docs {
		content = append(content, d...)
	}
	return append(binary.LittleEndian.AppendUint32([]byte{1}, uint32(len(content)+4)), content...)
}

// message is a whole message of the opcode.
func message(op OpCode, parts ...[]byte) []byte {
	b := make([]byte, HeaderSize)
	for _, p := range parts {
		b = append(b, p...)
	}
	putHeader(b, Header{Length: int32(len(b)), RequestID: 7, OpCode: op})
	return b
}

func flagBits(f Flags) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(f)) }

// withChecksum appends a right checksum to a message whose flags announce one.
func withChecksum(b []byte) []byte {
	binary.LittleEndian.PutUint32(b, uint32(len(b)+4))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

func ping() bson.Document {
	return bsoncore.NewDocumentBuilder().AppendInt32("ping", 1).AppendString("$db", "admin").Build()
}

// read parses the first message of b.
func read(b []byte) (*Message, error) {
	m, err := NewReader(bytes.NewReader(b)).Next()
	if err != nil {
		return nil, err
	}
	return m, m.Parse()
}

func TestSectionsComeBackAsTheyWereSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := ping()
		counts := rapid.SliceOfN(rapid.IntRange(0, 40), 0, 2).Draw(t, "documents")
		compressor := Compressor(rapid.SampledFrom([]int{0, 1, 2, 3, 255}).Draw(t, "compressor"))
		checksum := rapid.Bool().Draw(t, "checksum")
		var flags Flags
		if checksum {
			flags = ChecksumPresent
		}
		parts := [][]byte{flagBits(flags)}
		bodyAt := rapid.IntRange(0, len(counts)).Draw(t, "bodyAt")
		var want [][]bson.Document
		for i, n := range counts {
			if i == bodyAt {
				parts = append(parts, section0(body))
			}
			var docs []bson.Document
			for range n {
				docs = append(docs, bsoncore.NewDocumentBuilder().AppendString("s", rapid.String().Draw(t, "s")).Build())
			}
			want = append(want, docs)
			parts = append(parts, section1([]string{"documents", "other"}[i], docs...))
		}
		if bodyAt == len(counts) {
			parts = append(parts, section0(body))
		}
		b := message(OpMsg, parts...)
		if checksum {
			b = withChecksum(b)
		}
		b = compressFor(t, compressor, b)
		// Two in a row, through a reader that gives a few bytes at a time.
		r := NewReader(&dripping{bytes.NewReader(append(b[:len(b):len(b)], b...))})
		for range 2 {
			m, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Parse(); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(m.Body, body) || len(m.Sequences) != len(want) || m.Header.RequestID != 7 {
				t.Fatalf("got body %s, %d sequences, id %d", m.Body, len(m.Sequences), m.Header.RequestID)
			}
			for i, s := range m.Sequences {
				if len(s.Documents) != len(want[i]) {
					t.Fatalf("sequence %d has %d documents, want %d", i, len(s.Documents), len(want[i]))
				}
				for j, d := range s.Documents {
					if !bytes.Equal(d, want[i][j]) {
						t.Fatalf("document %d.%d is %s, want %s", i, j, d, want[i][j])
					}
				}
			}
			m.Release()
		}
		if _, err := r.Next(); err != io.EOF {
			t.Fatalf("after the last message: %v", err)
		}
	})
}

// compressFor wraps a message, also where that makes it larger.
func compressFor(t interface{ Fatal(...any) }, c Compressor, msg []byte) []byte {
	if c == NotCompressed {
		return msg
	}
	if out, ok := AppendCompressed(nil, c, msg); ok {
		return out
	}
	return wrapped(OpMsg, len(msg)-HeaderSize, Noop, msg[HeaderSize:])
}

func wrapped(op OpCode, size int, c Compressor, content []byte) []byte {
	head := binary.LittleEndian.AppendUint32(nil, uint32(op))
	head = binary.LittleEndian.AppendUint32(head, uint32(size))
	return message(OpCompressed, append(head, byte(c)), content)
}

type dripping struct{ r io.Reader }

func (d *dripping) Read(b []byte) (int, error) { return d.r.Read(b[:min(len(b), 7)]) }

func TestBadBytes(t *testing.T) {
	good := message(OpMsg, flagBits(0), section0(ping()))
	long := message(OpMsg, flagBits(0), section0(bsoncore.NewDocumentBuilder().AppendBinary("b", 0, make([]byte, 2000)).Build()))
	compressed, ok := AppendCompressed(nil, Zstd, long)
	if !ok {
		t.Fatal("2,000 zeros did not compress")
	}
	with := func(b []byte, at int, v uint32) []byte {
		b = bytes.Clone(b)
		binary.LittleEndian.PutUint32(b[at:], v)
		return b
	}
	deep := bsoncore.NewDocumentBuilder().AppendInt32("x", 1).Build()
	for range CommandDepth {
		deep = bsoncore.NewDocumentBuilder().AppendDocument("x", deep).Build()
	}
	big := bsoncore.NewDocumentBuilder().AppendBinary("b", 0, make([]byte, bson.MaxInternalSize)).Build()
	for _, c := range []struct {
		name string
		b    []byte
		want error
	}{
		{"half a header", good[:9], ErrTruncated},
		{"half a body", good[:len(good)-3], ErrTruncated},
		{"length zero", with(good, 0, 0), ErrLength},
		{"length below the header's", with(good, 0, 15), ErrLength},
		{"negative length", with(good, 0, 1<<31+100), ErrLength},
		{"length over the limit", with(good, 0, MaxMessageSize+1), ErrLength},
		{"length beyond what comes", with(good, 0, MaxMessageSize), ErrTruncated},
		{"length short of what is there", with(good, 0, uint32(len(good)-5)), ErrDocument},
		{"unknown opcode", with(good, 12, 2002), ErrOpCode},
		{"a reply as a request", with(good, 12, 1), ErrOpCode},
		{"no flags", message(OpMsg), ErrTruncated},
		{"unknown section kind", message(OpMsg, flagBits(0), []byte{9}), ErrSection},
		{"sequence size negative", message(OpMsg, flagBits(0), section0(ping()), []byte{1, 255, 255, 255, 255}), ErrSection},
		{"sequence size over the end", message(OpMsg, flagBits(0), section0(ping()), []byte{1, 99, 0, 0, 0, 'a', 0}), ErrSection},
		{"sequence without an end of name", message(OpMsg, flagBits(0), section0(ping()), []byte{1, 6, 0, 0, 0, 'a', 'b'}), ErrSection},
		{"document size negative", message(OpMsg, flagBits(0), []byte{0, 255, 255, 255, 255, 0}), ErrDocument},
		{"document that lies inside", message(OpMsg, flagBits(0), section0(with(ping(), 4+1+5, 0x7fffffff)[:len(ping())-1]), []byte{1}), ErrDocument},
		{"wrong checksum", append(withChecksum(message(OpMsg, flagBits(ChecksumPresent), section0(ping())))[:len(good)], 1, 2, 3, 4), ErrChecksum},
		{"checksum missing", message(OpMsg, flagBits(ChecksumPresent)), ErrTruncated},
		{"compressed inside compressed", wrapped(OpCompressed, 10, Noop, make([]byte, 10)), ErrCompression},
		{"unknown compressor", wrapped(OpMsg, 10, 9, make([]byte, 10)), ErrCompression},
		{"compressed head cut", message(OpCompressed, make([]byte, 5)), ErrCompression},
		{"uncompressed size negative", with(compressed, HeaderSize+4, 1<<31), ErrCompression},
		{"uncompressed size over the limit", with(compressed, HeaderSize+4, MaxMessageSize), ErrCompression},
		{"uncompressed size too large", with(compressed, HeaderSize+4, uint32(len(long))), ErrCompression},
		{"uncompressed size too small", with(compressed, HeaderSize+4, 100), ErrCompression},
		{"zlib garbage", wrapped(OpMsg, 10, Zlib, []byte("garbage!!!")), ErrCompression},
		{"snappy garbage", wrapped(OpMsg, 10, Snappy, []byte{10, 255, 255}), ErrCompression},
		{"zstd garbage", wrapped(OpMsg, 10, Zstd, []byte("garbage!!!")), ErrCompression},
		{"query without an end of namespace", message(OpQuery, flagBits(0), []byte("admin")), ErrSection},
		{"query without numbers", message(OpQuery, flagBits(0), []byte("admin.$cmd\x00")), ErrTruncated},
		{"query without a document", message(OpQuery, flagBits(0), []byte("admin.$cmd\x00"), make([]byte, 8)), ErrDocument},
		{"query with too much", message(OpQuery, flagBits(0), []byte("admin.$cmd\x00"), make([]byte, 8), ping(), ping(), ping()), ErrLength},

		{"no body", message(OpMsg, flagBits(0), section1("documents")), mongoerr.New(40587, "")},
		{"two bodies", message(OpMsg, flagBits(0), section0(ping()), section0(ping())), mongoerr.New(40430, "")},
		{"a sequence twice", message(OpMsg, flagBits(0), section0(ping()), section1("a"), section1("a")), mongoerr.New(40431, "")},
		{"three sequences", message(OpMsg, flagBits(0), section0(ping()), section1("a"), section1("b"), section1("c")), mongoerr.New(mongoerr.TooManyDocumentSequences, "")},
		{"a field in body and sequence", message(OpMsg, flagBits(0), section0(ping()), section1("ping")), mongoerr.New(40433, "")},
		{"unknown required flag", message(OpMsg, flagBits(1<<5), section0(ping())), mongoerr.New(mongoerr.IllegalOpMsgFlag, "")},
		{"document too deep", message(OpMsg, flagBits(0), section0(deep)), mongoerr.New(mongoerr.Overflow, "")},
		{"document too large", message(OpMsg, flagBits(0), section0(ping()), section1("documents", big)), mongoerr.New(mongoerr.BSONObjectTooLarge, "")},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := read(c.b)
			var answer, want *mongoerr.Error
			if errors.As(c.want, &want) {
				if !errors.As(err, &answer) || answer.Code != want.Code {
					t.Fatalf("got %v, want code %s", err, want.Code)
				}
				return
			}
			if !errors.Is(err, c.want) || errors.As(err, &answer) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestOptionalFlagsAreTaken(t *testing.T) {
	m, err := read(message(OpMsg, flagBits(ExhaustAllowed|1<<30|MoreToCome), section0(ping())))
	if err != nil {
		t.Fatal(err)
	}
	if m.Flags&ExhaustAllowed == 0 || m.Flags&MoreToCome == 0 {
		t.Fatalf("flags %b", m.Flags)
	}
}

func TestQueryIsUnwrapped(t *testing.T) {
	wrappedQuery := bsoncore.NewDocumentBuilder().AppendDocument("$query", ping()).Build()
	for _, doc := range []bson.Document{ping(), wrappedQuery} {
		m, err := read(message(OpQuery, flagBits(0), []byte("admin.$cmd\x00"), make([]byte, 8), doc))
		if err != nil {
			t.Fatal(err)
		}
		if m.Namespace != "admin.$cmd" || !bytes.Equal(m.Body, ping()) {
			t.Fatalf("got %s %s", m.Namespace, m.Body)
		}
	}
}

// allocated is what f allocates, in bytes.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestClaimsCostNothingBeforeBytesCome(t *testing.T) {
	claim := message(OpMsg, flagBits(0), section0(ping()))
	binary.LittleEndian.PutUint32(claim, MaxMessageSize)
	if n := allocated(func() { read(claim) }); n > 3*smallBuffer {
		t.Errorf("a header that claims 48 MB made %d bytes be allocated", n)
	}
	for _, c := range []Compressor{Snappy, Zlib} {
		// The claim is far beyond what so few bytes can become.
		b := wrapped(OpMsg, MaxMessageSize-HeaderSize, c, append([]byte{0xf0, 0xd5, 0xf1, 0x16}, make([]byte, 60)...))
		if n := allocated(func() { read(b) }); n > 3*smallBuffer {
			t.Errorf("compressor %d: a claim of 48 MB made %d bytes be allocated", c, n)
		}
	}
}

func TestLargeMessageArrivesWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 9<<20)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	doc := bsoncore.NewDocumentBuilder().AppendBinary("b", 0, data).Build()
	for _, c := range []Compressor{NotCompressed, Snappy, Zlib, Zstd} {
		b := compressFor(t, c, message(OpMsg, flagBits(0), section0(ping()), section1("documents", doc, doc)))
		m, err := read(b)
		if err != nil {
			t.Fatal(c, err)
		}
		if len(m.Sequences[0].Documents) != 2 || !bytes.Equal(m.Sequences[0].Documents[1], doc) {
			t.Fatalf("compressor %d: documents changed", c)
		}
		m.Release()
	}
}

func TestHighlyCompressible(t *testing.T) {
	doc := bsoncore.NewDocumentBuilder().AppendBinary("b", 0, make([]byte, 15<<20)).Build()
	for _, c := range []Compressor{Snappy, Zlib, Zstd} {
		b, ok := AppendCompressed(nil, c, message(OpMsg, flagBits(0), section0(doc)))
		if !ok {
			t.Fatal(c, "did not compress")
		}
		m, err := read(b)
		if err != nil {
			t.Fatal(c, err)
		}
		if !bytes.Equal(m.Body, doc) || m.Compressor != c {
			t.Fatalf("compressor %d: body changed", c)
		}
		m.Release()
	}
}

func TestReply(t *testing.T) {
	buf := append(make([]byte, ReplyRoom), ping()...)
	b := FinishReply(bytes.Clone(buf), 3, 7, 0)
	m, err := read(b)
	if err != nil || m.Header.ResponseTo != 7 || m.Header.RequestID != 3 || !bytes.Equal(m.Body, ping()) {
		t.Fatal(err, m)
	}
	if m, err = read(FinishReply(bytes.Clone(buf), 3, 7, ChecksumPresent)); err != nil || m.Flags != ChecksumPresent {
		t.Fatal(err)
	}
	head := ReplyHead(make([]byte, ReplyRoom), 3, 7, 0, len(ping()))
	if got := append(head, ping()...); !bytes.Equal(got, b) {
		t.Fatalf("a head and its document make %x, want %x", got, b)
	}
}

func TestComplete(t *testing.T) {
	small := message(OpMsg, flagBits(0), section0(ping()))
	r := NewReader(bytes.NewReader(append(small[:len(small):len(small)], small[:20]...)))
	if err := r.Wait(); err != nil || !r.Complete() {
		t.Fatal("a whole message in the buffer is complete", err)
	}
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if err := r.Wait(); err != nil || r.Complete() {
		t.Fatal("20 bytes of a message are not complete", err)
	}
}
