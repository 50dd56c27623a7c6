package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
)

var logs = backend.Namespace{Database: "fla", Collection: "log"}

func docs(t *testing.T, from, to int) []bson.Document {
	t.Helper()
	var list []bson.Document
	for i := from; i < to; i++ {
		list = append(list, bsontest.Doc(t, fmt.Sprintf(`{"_id": %d, "text": "a line of a log, much like the others"}`, i)))
	}
	return list
}

func open(t *testing.T, o Options) *Archive {
	t.Helper()
	a, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func closed(t *testing.T, a *Archive) {
	t.Helper()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
}

// stored reads all documents of a folder's files, in the order of the manifest, as zstd and mongorestore would; it checks both lists.
func stored(t *testing.T, dir string) []bson.Document {
	t.Helper()
	entries, err := Entries(dir)
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(dir, Checksums))
	if err != nil {
		t.Fatal(err)
	}
	var all []bson.Document
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.File))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		if hex.EncodeToString(sum[:]) != e.SHA256 || !strings.Contains(string(sums), e.SHA256+"  "+e.File+"\n") || int64(len(content)) != e.Stored {
			t.Errorf("%s is not what the lists say", e.File)
		}
		r, err := zstd.NewReader(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		n := int64(0)
		if err := Each(r, func(d bson.Document) error { n++; all = append(all, d); return nil }); err != nil {
			t.Errorf("%s: %v", e.File, err)
		}
		r.Close()
		if n != e.Documents {
			t.Errorf("%s holds %d documents, and the manifest says %d", e.File, n, e.Documents)
		}
	}
	return all
}

func wantDocs(t *testing.T, got, want []bson.Document) {
	t.Helper()
	if !bytes.Equal(join(got), join(want)) {
		t.Errorf("%d documents are stored, and %d of other bytes should be", len(got), len(want))
	}
}

func join(docs []bson.Document) []byte {
	var all []byte
	for _, d := range docs {
		all = append(all, d...)
	}
	return all
}

func TestArchive(t *testing.T) {
	dir := t.TempDir()
	a := open(t, Options{Dir: dir, Rotate: 300})
	want := docs(t, 0, 500)
	for i := 0; i < 500; i += 50 {
		if err := a.Append(logs, want[i:i+50]); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, a)
	wantDocs(t, stored(t, dir), want)
	files, err := filepath.Glob(filepath.Join(dir, "fla", "log.00000?.bson.zst"))
	if err != nil || len(files) < 2 {
		t.Errorf("files %v, %v; want several", files, err)
	}
	if total := a.Total(); total.Documents != 500 || total.Bytes != int64(len(join(want))) {
		t.Errorf("total %+v", total)
	}

	// Opened again, it goes on in a new file.
	a = open(t, Options{Dir: dir})
	more := docs(t, 500, 510)
	if err := a.Append(logs, more); err != nil {
		t.Fatal(err)
	}
	closed(t, a)
	wantDocs(t, stored(t, dir), append(want, more...))
}

func TestNames(t *testing.T) {
	dir := t.TempDir()
	a := open(t, Options{Dir: dir})
	odd := backend.Namespace{Database: "fla", Collection: "../a/b.%2F"}
	if err := a.Append(odd, docs(t, 0, 1)); err != nil {
		t.Fatal(err)
	}
	closed(t, a)
	entries, err := Entries(dir)
	if err != nil || len(entries) != 1 || entries[0].Namespace != odd.String() || namespaceOf(entries[0].File) != odd.String() {
		t.Errorf("entries %+v, %v", entries, err)
	}
}

func TestOpenTwice(t *testing.T) {
	dir := t.TempDir()
	a := open(t, Options{Dir: dir})
	if _, err := Open(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("opened twice: %v", err)
	}
	closed(t, a)
	closed(t, open(t, Options{Dir: dir}))
}

// TestCutOff: after the end of a process without notice, at every length that its last frame may have, what was acknowledged is there.
func TestCutOff(t *testing.T) {
	dir := t.TempDir()
	a := open(t, Options{Dir: dir})
	want := docs(t, 0, 20)
	if err := a.Append(logs, want[:10]); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join("fla", "log.000001.bson.zst")
	first, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Append(logs, want[10:]); err != nil {
		t.Fatal(err)
	}
	both, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	closed(t, a)
	for length := 0; length <= len(both); length++ {
		left := t.TempDir()
		if err := os.Mkdir(filepath.Join(left, "fla"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(left, name), both[:length], 0o600); err != nil {
			t.Fatal(err)
		}
		a := open(t, Options{Dir: left})
		closed(t, a)
		switch {
		case length < len(first):
			if entries, err := Entries(left); err != nil || len(entries) > 0 {
				t.Errorf("%d bytes: %v, %v", length, entries, err)
			}
		case length < len(both):
			wantDocs(t, stored(t, left), want[:10])
		default:
			wantDocs(t, stored(t, left), want)
		}
	}
}

// fullFile is a file on a disk that is full after some bytes.
type fullFile struct {
	*os.File
	room *int
}

func (f fullFile) Write(p []byte) (int, error) {
	if n := min(len(p), *f.room); n < len(p) {
		n, _ = f.File.Write(p[:n])
		*f.room -= n
		return n, syscall.ENOSPC
	}
	*f.room -= len(p)
	return f.File.Write(p)
}

// TestFullDisk: what did not fit is refused whole, and the archive goes on when there is room again.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	room := 200
	a := open(t, Options{Dir: dir, create: func(path string) (file, error) {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		return fullFile{f, &room}, err
	}})
	want := docs(t, 0, 30)
	if err := a.Append(logs, want[:10]); err != nil {
		t.Fatal(err)
	}
	if err := a.Append(logs, want[10:20]); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("error %v, want a full disk", err)
	}
	room = 1000
	if err := a.Append(logs, want[20:]); err != nil {
		t.Fatal(err)
	}
	closed(t, a)
	wantDocs(t, stored(t, dir), append(want[:10:10], want[20:]...))
}
