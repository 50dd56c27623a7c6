package archive

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
)

// lines are those of a list.
func lines(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// cut leaves an archive as a process does that ends without notice: its file is in no list.
func cut(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{Manifest, Checksums} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFolderByOtherNames: however the folder is written, its files are listed once, by their names in it, and those that were cut off are found.
func TestFolderByOtherNames(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"plain", "./dot", "slash/", "twice//over", "a/../b", "odd[1]*?"} {
		for range 2 {
			a := open(t, Options{Dir: dir})
			if err := a.Append(logs, docs(t, 0, 3)); err != nil {
				t.Fatal(err)
			}
			closed(t, a)
		}
		closed(t, open(t, Options{Dir: dir}))
		if listed, sums := lines(t, filepath.Join(dir, Manifest)), lines(t, filepath.Join(dir, Checksums)); len(listed) != 2 || len(sums) != 2 {
			t.Errorf("%s: two files are listed as\n%s\n%s", dir, strings.Join(listed, "\n"), strings.Join(sums, "\n"))
		}
		cut(t, dir)
		closed(t, open(t, Options{Dir: dir}))
		if got := stored(t, dir); len(got) != 6 {
			t.Errorf("%s: of two files that were cut off %d documents are listed, want 6", dir, len(got))
		}
	}
	if _, err := Open(Options{}); err == nil {
		t.Error("an archive without a folder was opened")
	}
}

// TestHalfLines: what a full disk or the end of a process has left of a line is no part of the next one, and its file is listed again.
func TestHalfLines(t *testing.T) {
	for _, left := range []struct{ manifest, sums int }{{-20, 0}, {-1, 0}, {-20, -1}, {0, -30}} { // bytes that are missing; 0: the whole line
		dir := t.TempDir()
		for i := range 2 {
			a := open(t, Options{Dir: dir})
			if err := a.Append(logs, docs(t, 3*i, 3*i+3)); err != nil {
				t.Fatal(err)
			}
			closed(t, a)
		}
		for name, missing := range map[string]int{Manifest: left.manifest, Checksums: left.sums} {
			path := filepath.Join(dir, name)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if missing == 0 && name == Manifest { // the second line never came
				missing = -len(text) + bytes.IndexByte(text, '\n') + 1
			}
			if err := os.Truncate(path, int64(len(text)+missing)); err != nil {
				t.Fatal(err)
			}
		}
		a := open(t, Options{Dir: dir})
		if err := a.Append(logs, docs(t, 6, 9)); err != nil {
			t.Fatal(err)
		}
		closed(t, a)
		wantDocs(t, stored(t, dir), docs(t, 0, 9))
		listed := lines(t, filepath.Join(dir, Manifest))
		sums := lines(t, filepath.Join(dir, Checksums))
		if len(listed) != 3 || len(sums) != 3 {
			t.Errorf("%+v: three files are listed as\n%s\n%s", left, strings.Join(listed, "\n"), strings.Join(sums, "\n"))
		}
	}
}

// nested is a document with documents in it, so deep.
func nested(depth int) bson.Document {
	doc := bsoncore.NewDocumentBuilder().AppendInt32("_id", 1).Build()
	for range depth - 1 {
		doc = bsoncore.NewDocumentBuilder().AppendDocument("d", doc).Build()
	}
	return bson.Document(doc)
}

// TestDeepDocumentsStay: a file that was cut off keeps documents that nest as deep as servers let them.
func TestDeepDocumentsStay(t *testing.T) {
	dir := t.TempDir()
	want := []bson.Document{nested(100), nested(120), nested(200), nested(1)}
	a := open(t, Options{Dir: dir})
	for _, d := range want {
		if err := a.Append(logs, []bson.Document{d}); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, a)
	cut(t, dir)
	closed(t, open(t, Options{Dir: dir}))
	wantDocs(t, stored(t, dir), want)
}

// TestForeignFilesStay: what an archive did not write is neither cut nor removed.
func TestForeignFilesStay(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "fla", "notes.bson.zst")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("somebody's own"), 0o600); err != nil {
		t.Fatal(err)
	}
	closed(t, open(t, Options{Dir: dir}))
	if text, err := os.ReadFile(path); err != nil || string(text) != "somebody's own" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestLargeAppend: however much one call brings, no frame holds much more than frameBytes, so that a file that was cut off is read in little memory.
func TestLargeAppend(t *testing.T) {
	dir := t.TempDir()
	large := func(id int32) bson.Document {
		return bson.Document(bsoncore.NewDocumentBuilder().AppendInt32("_id", id).AppendBinary("b", 0, make([]byte, 7<<20)).Build())
	}
	want := []bson.Document{large(1), large(2), large(3), large(4), large(5)}
	a := open(t, Options{Dir: dir})
	if err := a.Append(logs, want); err != nil {
		t.Fatal(err)
	}
	if got := cap(a.plain); got > 2*frameBytes {
		t.Errorf("a frame was made of %d bytes", got)
	}
	closed(t, a)
	cut(t, dir)
	closed(t, open(t, Options{Dir: dir}))
	wantDocs(t, stored(t, dir), want)
}

// TestWhatLasts: a folder that is a file is so until somebody mends it; one that another process has open is free again later.
func TestWhatLasts(t *testing.T) {
	lasts := func(err error) bool {
		var p interface{ Permanent() bool }
		return errors.As(err, &p) && p.Permanent()
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{path, filepath.Join(path, "below")} {
		if _, err := Open(Options{Dir: dir}); !lasts(err) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v; want an error that lasts and names it", dir, err)
		}
	}
	dir := t.TempDir()
	a := open(t, Options{Dir: dir})
	if _, err := Open(Options{Dir: dir}); err == nil || lasts(err) {
		t.Errorf("%v; want an error that does not last", err)
	}
	closed(t, a)
}
