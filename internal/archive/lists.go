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

// list puts a file that is closed into both lists.
func (a *Archive) list(e Entry) error {
	line, err := json.Marshal(e)
	if err == nil {
		err = errors.Join(
			addLine(filepath.Join(a.options.Dir, Checksums), e.SHA256+"  "+e.File),
			addLine(filepath.Join(a.options.Dir, Manifest), string(line)),
			syncFolder(a.options.Dir))
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", e.File, err)
	}
	return nil
}

func addLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, line+"\n")
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
		if json.Unmarshal(line, &e) == nil { // the last line of a process that ended without notice may be half there
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
	files, err := filepath.Glob(filepath.Join(a.options.Dir, "*", "*"+suffix))
	if err != nil {
		return err
	}
	for _, path := range files {
		name := filepath.ToSlash(strings.TrimPrefix(path, a.options.Dir+string(filepath.Separator)))
		if known[name] {
			continue
		}
		if err := a.finish(path, name); err != nil {
			return fmt.Errorf("finish %s: %w", name, err)
		}
	}
	return nil
}

// finish cuts one file behind its last whole frame and lists it.
func (a *Archive) finish(path, name string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	e := Entry{File: name, Namespace: namespaceOf(name), Cut: true}
	for {
		frame, documents, plain := firstFrame(content[e.Stored:])
		if frame == 0 {
			break
		}
		e.Stored += int64(frame)
		e.Documents += int64(documents)
		e.Bytes += int64(plain)
	}
	if e.Documents == 0 {
		return os.Remove(path)
	}
	if err := os.Truncate(path, e.Stored); err != nil {
		return err
	}
	sum := newChecksum()
	sum.Write(content[:e.Stored])
	e.SHA256 = sum.text()
	return a.list(e)
}

// namespaceOf is the namespace that a file's name tells.
func namespaceOf(name string) string {
	database, file, _ := strings.Cut(name, "/")
	collection := strings.TrimSuffix(file, suffix)
	collection = collection[:max(0, len(collection)-len(".000000"))]
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

// firstFrame returns the length of the frame that some bytes begin with, and of what is in it; 0 where it is not whole.
func firstFrame(content []byte) (frame, documents, plain int) {
	length := frameLength(content)
	if length == 0 {
		return 0, 0, 0
	}
	decoder, err := zstd.NewReader(bytes.NewReader(content[:length]), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return 0, 0, 0
	}
	defer decoder.Close()
	all, err := io.ReadAll(decoder)
	if err != nil {
		return 0, 0, 0
	}
	err = Each(bytes.NewReader(all), func(bson.Document) error { documents++; return nil })
	if err != nil || documents == 0 {
		return 0, 0, 0
	}
	return length, documents, len(all)
}

// frameLength is the length of a whole frame by its headers (https://www.rfc-editor.org/rfc/rfc8878#section-3.1), 0 where it is none.
func frameLength(content []byte) int {
	var h zstd.Header
	if err := h.Decode(content); err != nil || h.Skippable {
		return 0
	}
	at := h.HeaderSize
	for last := false; !last; {
		if len(content) < at+3 {
			return 0
		}
		block := int(content[at]) | int(content[at+1])<<8 | int(content[at+2])<<16
		last = block&1 == 1
		size := block >> 3
		if kind := block >> 1 & 3; kind == 1 {
			size = 1 // one byte, repeated
		}
		at += 3 + size
	}
	if h.HasCheckSum {
		at += 4
	}
	if at > len(content) {
		return 0
	}
	return at
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
		if err := bson.Validate(doc, bson.MaxDepth); err != nil {
			return err
		}
		if err := visit(doc); err != nil {
			return err
		}
	}
}
