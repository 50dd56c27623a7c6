package admin

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"oxbow/internal/admin/admintest"
)

// broken is a figure that can't be read.
type broken struct{ desc *prometheus.Desc }

func (b broken) Describe(out chan<- *prometheus.Desc) { out <- b.desc }

func (b broken) Collect(out chan<- prometheus.Metric) {
	out <- prometheus.NewInvalidMetric(b.desc, errors.New("out of reach"))
}

// serve serves with a token, a figure that is there and one that is not, and returns what GET gives.
func serve(t *testing.T, ready error) (get func(path, token string) (int, string), log *strings.Builder) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log = &strings.Builder{}
	registry := prometheus.NewRegistry()
	registry.MustRegister(broken{prometheus.NewDesc("broken", "broken", nil, nil)}, prometheus.NewCounter(prometheus.CounterOpts{Name: "there"}))
	s := Serve(listener, Options{
		Metrics: registry, Ready: func(context.Context) error { return ready }, Token: "the token", Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return func(path, token string) (int, string) { return admintest.Get(t, s.Addr(), path, token) }, log
}

// One figure that can't be read takes none of the others along, and says why in the log only.
func TestBrokenFigure(t *testing.T) {
	get, log := serve(t, nil)
	status, text := get("/metrics", "the token")
	if status != http.StatusOK || !strings.Contains(text, "there 0") || strings.Contains(text, "out of reach") {
		t.Errorf("%d: %s", status, text)
	}
	if !strings.Contains(log.String(), "out of reach") {
		t.Errorf("the log: %s", log)
	}
}

// The reason of not being ready is for those who hold the token.
func TestNotReady(t *testing.T) {
	get, _ := serve(t, errors.New("backend one: away"))
	if status, text := get("/readyz", ""); status != http.StatusServiceUnavailable || strings.Contains(text, "away") {
		t.Errorf("without the token: %d %s", status, text)
	}
	if status, text := get("/readyz", "the token"); status != http.StatusServiceUnavailable || !strings.Contains(text, "away") {
		t.Errorf("with the token: %d %s", status, text)
	}
	if status, _ := get("/metrics", ""); status != http.StatusUnauthorized {
		t.Errorf("metrics without the token: %d", status)
	}
}
