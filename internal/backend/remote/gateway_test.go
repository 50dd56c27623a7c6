package remote_test

import (
	"context"
	"fmt"
	"testing"

	"oxbow"
	"oxbow/internal/backend"
	"oxbow/internal/backend/backendtest"
	"oxbow/internal/backend/remote"
)

// TestContractThroughGateway: on plain collections the whole gateway keeps a backend's contract.
func TestContractThroughGateway(t *testing.T) {
	g, err := oxbow.Open(context.Background(), oxbow.Options{
		Config: fmt.Appendf(nil, "backends:\n  local: {embedded: %q}\ndatabases: {\"*\": local}\n", t.TempDir()),
		Listen: "127.0.0.1:0",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	backendtest.Run(t, func(t *testing.T) backend.Backend {
		b, err := remote.Open(g.URI())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		return b
	})
}
