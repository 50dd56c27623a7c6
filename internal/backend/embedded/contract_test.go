package embedded

import (
	"testing"

	"oxbow/internal/backend"
	"oxbow/internal/backend/backendtest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// openIn opens a small backend and closes it with the test.
func openIn(t testing.TB, store Store) *Backend {
	t.Helper()
	store.CacheBytes, store.MemTableBytes = 8<<20, 4<<20
	b, err := Open(Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

func TestContractInMemory(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) backend.Backend {
		return openIn(t, Store{Dir: "db", FS: vfs.NewMem()})
	})
}

func TestContractOnDisk(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) backend.Backend { return openIn(t, Store{Dir: t.TempDir()}) })
}
