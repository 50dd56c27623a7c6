package capped

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRestore(t *testing.T) {
	saved, folder := filepath.Join(t.TempDir(), "saved"), filepath.Join(t.TempDir(), "data")
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{"000001.sst": "table", "MANIFEST-000001": "manifest", "wal/000002.log": "log"}
	for name, text := range files {
		write(filepath.Join(saved, name), text)
	}
	for round := range 2 {
		if err := Restore(folder, saved); err != nil {
			t.Fatal(err)
		}
		found := 0
		err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				found++
			}
			return err
		})
		if err != nil || found != len(files) {
			t.Errorf("round %d: %d files, want %d: %v", round, found, len(files), err)
		}
		for name, want := range files {
			if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(got) != want {
				t.Errorf("round %d: %s is %q, want %q: %v", round, name, got, want, err)
			}
		}
		// What a server does to its folder does not reach what is saved.
		write(filepath.Join(folder, "MANIFEST-000001"), "changed")
		write(filepath.Join(folder, "000003.sst"), "new")
		if err := os.Remove(filepath.Join(folder, "000001.sst")); err != nil {
			t.Fatal(err)
		}
	}
}

// serving is a server as far as Start knows one.
const serving = `trap 'exit 0' TERM; echo "level=INFO msg=serving address=127.0.0.1:4711" >&2; while true; do sleep 0.05; done`

func TestStart(t *testing.T) {
	s, err := Start(t.Context(), 0, nil, "sh", "-c", serving)
	if err != nil {
		t.Fatal(err)
	}
	if s.Address != "127.0.0.1:4711" || s.Limit != 0 {
		t.Errorf("%q, limit %d", s.Address, s.Limit)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := Start(t.Context(), 0, nil, "sh", "-c", "echo no such folder >&2; exit 3"); err == nil || !strings.Contains(err.Error(), "no such folder") || !strings.Contains(err.Error(), "3") {
		t.Errorf("a server that does not start: %v", err)
	}
}

// TestLimit runs a server in a group of its own.
func TestLimit(t *testing.T) {
	const memory = 64 << 20
	s, err := Start(t.Context(), memory, nil, "sh", "-c", serving)
	if err != nil {
		t.Fatal(err)
	}
	if s.group == nil {
		if s.Why == "" || s.Limit != 0 {
			t.Errorf("no group, limit %d, why %q", s.Limit, s.Why)
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		t.Skipf("this machine allows no control group: %s", s.Why)
	}
	members, err := os.ReadFile(s.group.Processes())
	if err != nil || len(strings.Fields(string(members))) == 0 {
		t.Errorf("the group has the processes %q: %v", members, err)
	}
	if s.Limit != memory {
		t.Errorf("limit %d, want %d", s.Limit, memory)
	}
	folder := s.group.folder
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if exists(folder) {
		t.Errorf("%s is left behind", folder)
	}
}
