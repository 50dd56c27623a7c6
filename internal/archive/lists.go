package archive

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/klauspost/compress/zstd"

	"oxbow/internal/bson"
)

// The lists in an archive's folder: what the files hold, a JSON document a line, and their checksums as sha256sum -c reads them.
const (
	Manifest  = "manifest.jsonl"
	Checksums = "SHA256SUMS"
)

// Entry is a file in the manifest.
type Entry struct {
	File      string `json:"file"` // relative to the folder, with /
	Namespace string `json:"namespace"`
	Documents int64  `json:"documents"`
	Bytes     int64  `json:"bytes"`  // of BSON
	Stored    int64  `json:"stored"` // the file's size
	SHA256    string `json:"sha256"` // of the file
	Cut       bool   `json:"cut,omitempty"`
	// Cut: the process that wrote it ended without notice, so that its last documents may be in the collection still, and in another file too.
}

type checksum struct{ hash.Hash }

func newChecksum() checksum { return checksum{sha256.New()} }

func (c checksum) text() string { return hex.EncodeToString(c.Sum(nil)) }

// list puts a file that is closed into both lists, the manifest last: what is in that is not listed again.
func (a *Archive) list(e Entry) error {
	line, err := json.Marshal(e)
	if err == nil {
		err = addLine(filepath.Join(a.options.Dir, Checksums), e.SHA256+"  "+e.File)
	}
	if err == nil {
		err = errors.Join(addLine(filepath.Join(a.options.Dir, Manifest), string(line)), syncFolder(a.options.Dir))
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", e.File, err)
	}
	return nil
}

// addLine adds a line to a file that does not have it yet. What a write that was cut off has left of another line, here or in an earlier process, is taken away: its
// file is in no list, and is listed again.
func addLine(path, line string) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	for l := range bytes.Lines(text[:whole]) {
		if string(l) == line+"\n" {
			return nil
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if whole < len(text) {
		err = f.Truncate(int64(whole))
	}
	if err == nil {
		if _, err = io.WriteString(f, line+"\n"); err != nil {
			err = errors.Join(err, f.Truncate(int64(whole)))
		}
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// Entries reads the manifest of a folder.
func Entries(dir string) ([]Entry, error) {
	text, err := os.ReadFile(filepath.Join(dir, Manifest))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	var all []Entry
	for line := range bytes.Lines(text) {
		var e Entry
		// The last line of a process that ended without notice may be half there; what has no end is not listed (addLine).
		if bytes.HasSuffix(line, []byte("\n")) && json.Unmarshal(line, &e) == nil {
			all = append(all, e)
		}
	}
	return all, nil
}

// finishOthers cuts files that are in no list behind their last whole frame, and lists them.
func (a *Archive) finishOthers() error {
	listed, err := Entries(a.options.Dir)
	if err != nil {
		return err
	}
	known := make(map[string]bool, len(listed))
	for _, e := range listed {
		known[e.File] = true
	}
	names, err := a.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if known[name] {
			continue
		}
		if err := a.finish(name); err != nil {
			return fmt.Errorf("finish %s: %w", name, err)
		}
	}
	return nil
}

// names are those of all files that hold documents, as the manifest has them.
func (a *Archive) names() ([]string, error) {
	folders, err := os.ReadDir(a.options.Dir)
	if err != nil {
		return nil, fmt.Errorf("read the archive's folder: %w", err)
	}
	var names []string
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		files, err := os.ReadDir(filepath.Join(a.options.Dir, folder.Name()))
		if errors.Is(err, os.ErrPermission) {
			continue // none of an archive's, such as lost+found
		}
		if err != nil {
			return nil, fmt.Errorf("read the archive's folder: %w", err)
		}
		for _, f := range files {
			if ours.MatchString(f.Name()) {
				names = append(names, folder.Name()+"/"+f.Name())
			}
		}
	}
	return names, nil
}

// ours matches the names that fileOf gives.
var ours = regexp.MustCompile(`\.[0-9]{6,}\.bson\.zst$`)

// finish cuts one file behind its last whole frame and lists it.
func (a *Archive) finish(name string) error {
	path := filepath.Join(a.options.Dir, name)
	e, err := measure(path)
	if err != nil {
		return err
	}
	if e.Documents == 0 {
		return os.Remove(path)
	}
	if err := os.Truncate(path, e.Stored); err != nil {
		return err
	}
	e.File, e.Namespace, e.Cut = name, namespaceOf(name), true
	return a.list(e)
}

// measure counts what lies in the whole frames that a file begins with, and sums them up.
func measure(path string) (e Entry, err error) {
	f, err := os.Open(path)
	if err != nil {
		return e, err
	}
	defer f.Close()
	in, sum := bufio.NewReader(f), newChecksum()
	for {
		frame, err := readFrame(in)
		if err != nil {
			return e, err
		}
		documents, plain := inFrame(frame)
		if documents == 0 {
			break
		}
		e.Stored += int64(len(frame))
		e.Documents += documents
		e.Bytes += plain
		sum.Write(frame)
	}
	e.SHA256 = sum.text()
	return e, nil
}

// namespaceOf is the namespace that a file's name tells.
func namespaceOf(name string) string {
	database, file, _ := strings.Cut(name, "/")
	collection := strings.TrimSuffix(file, suffix)
	if dot := strings.LastIndexByte(collection, '.'); dot >= 0 {
		collection = collection[:dot]
	}
	return plainName(database) + "." + plainName(collection)
}

// plainName is fileName turned round.
func plainName(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] == '%' && i+2 < len(name) {
			if c, err := hex.DecodeString(name[i+1 : i+3]); err == nil {
				b.Write(c)
				i += 2
				continue
			}
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

// inFrame counts the documents in a frame, and their bytes; 0 where it is damaged.
func inFrame(frame []byte) (documents, plain int64) {
	decoder, err := zstd.NewReader(bytes.NewReader(frame), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return 0, 0
	}
	defer decoder.Close()
	err = Each(decoder, func(d bson.Document) error {
		documents++
		plain += int64(len(d))
		return nil
	})
	if err != nil {
		return 0, 0
	}
	return documents, plain
}

// maxFrame bounds what is read for one frame: Append makes none of more than a document or frameBytes, and what does not compress grows by a few bytes a block.
const maxFrame = 2 * (frameBytes + bson.MaxInternalSize)

// readFrame reads a whole frame by its headers (https://www.rfc-editor.org/rfc/rfc8878#section-3.1); nil where none begins, or it is not whole.
func readFrame(in *bufio.Reader) ([]byte, error) {
	head, err := in.Peek(zstd.HeaderMaxSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var h zstd.Header
	if err := h.Decode(head); err != nil || h.Skippable {
		return nil, nil
	}
	var frame []byte
	more := func(n int) (bool, error) {
		if len(frame)+n > maxFrame {
			return false, nil
		}
		at := len(frame)
		frame = append(frame, make([]byte, n)...)
		_, err := io.ReadFull(in, frame[at:])
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, nil
		}
		return err == nil, err
	}
	if ok, err := more(h.HeaderSize); !ok {
		return nil, err
	}
	for last := false; !last; {
		at := len(frame)
		if ok, err := more(3); !ok {
			return nil, err
		}
		block := int(frame[at]) | int(frame[at+1])<<8 | int(frame[at+2])<<16
		last = block&1 == 1
		size := block >> 3
		if kind := block >> 1 & 3; kind == 1 {
			size = 1 // one byte, repeated
		}
		if ok, err := more(size); !ok {
			return nil, err
		}
	}
	if h.HasCheckSum {
		if ok, err := more(4); !ok {
			return nil, err
		}
	}
	return frame, nil
}

// Each calls visit for each document of a stream of BSON.
func Each(r io.Reader, visit func(bson.Document) error) error {
	in := bufio.NewReader(r)
	for {
		head, err := in.Peek(4)
		if len(head) == 0 && errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a document's length: %w", err)
		}
		n := int(head[0]) | int(head[1])<<8 | int(head[2])<<16 | int(head[3])<<24
		if n < 5 || n > bson.MaxInternalSize {
			return fmt.Errorf("a document can't have %d bytes", n)
		}
		doc := make(bson.Document, n)
		if _, err := io.ReadFull(in, doc); err != nil {
			return fmt.Errorf("read a document: %w", err)
		}
		if err := bson.Validate(doc, maxStoredDepth); err != nil {
			return err
		}
		if err := visit(doc); err != nil {
			return err
		}
	}
}

// maxStoredDepth is far deeper than any server lets documents nest: what was archived is read again, whatever the server's limit was.
const maxStoredDepth = 1000
