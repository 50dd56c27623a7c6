package partition

import (
	"context"
	"strings"
	"testing"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
)

// server is a backend that answers hello with a text.
type server struct {
	t     *testing.T
	reply string
}

func (s server) Run(_ context.Context, req *backend.Request) (bson.Document, error) {
	if v, ok := bson.Get(req.Body, "hello"); !ok || v.AsInt64() != 1 {
		s.t.Errorf("asked %s", req.Body)
	}
	return bsontest.Doc(s.t, s.reply), nil
}

func (server) Abilities() backend.Abilities { return backend.Abilities{} }
func (server) Close() error                 { return nil }

func TestHelloTime(t *testing.T) {
	ask := HelloTime(map[string]backend.Backend{
		"good":   server{t, `{"localTime": {"$date": "2026-01-10T12:00:00Z"}, "ok": 1}`},
		"silent": server{t, `{"ok": 1}`},
		"down":   server{t, `{"ok": 0, "code": 91, "errmsg": "going down"}`},
	})
	if at, err := ask(t.Context(), "good"); err != nil || !at.Equal(time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)) {
		t.Errorf("%s, %v", at, err)
	}
	for name, want := range map[string]string{"silent": "no localTime", "down": "going down", "none": "not open"} {
		if _, err := ask(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
