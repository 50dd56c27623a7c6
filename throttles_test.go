package oxbow

import (
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"oxbow/internal/maintain"
	"oxbow/internal/observe"
	"oxbow/internal/throttle"
)

// metricsOf are the metrics of throttles as Prometheus gets them.
func metricsOf(t *testing.T, all *throttles) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(&observe.Throttles{Running: all.all})
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestThrottles has a gateway's throttle begin when it is asked for, show its verdict in metrics, and take other thresholds from a reload.
func TestThrottles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "oxbow.yaml")
	configure := func(throttle string) {
		t.Helper()
		text := "backends: {local: {embedded: " + dir + "/data}}\nthrottle: " + throttle + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure("cpu=off disk=off")
	g, err := Open(t.Context(), Options{Listen: "127.0.0.1:0", File: file, Log: slog.DiscardHandler})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close(t.Context())
	if text := metricsOf(t, g.throttles); text != "" {
		t.Errorf("without a job:\n%s", text)
	}
	one := g.throttles.of("local")
	if g.throttles.of("local") != one {
		t.Error("a backend has two throttles")
	}
	// Probes look when they come to it: the canary's first look may be one at which nobody had asked for a pace yet.
	for _, want := range []string{`oxbow_throttle_share{backend="local"} `, `oxbow_throttle_reason{backend="local",probe="`, `oxbow_throttle_probe_share{backend="local",probe="canary"} `} {
		for until := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			if err := one.Pace(maintain.Limits{}).Wait(t.Context(), 1, 0); err != nil {
				t.Fatal(err)
			}
			text := metricsOf(t, g.throttles)
			if strings.Contains(text, want) {
				break
			}
			if time.Now().After(until) {
				t.Fatalf("no %s in\n%s", want, text)
			}
		}
	}
	configure("cpu=off disk=off canary<1us..2us floor=1ns")
	if err := g.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if v := one.Verdict(); v.State == throttle.Stop && v.Probe == throttle.Canary {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("the new thresholds do nothing: %v", one.Verdict())
		}
	}
	if text := metricsOf(t, g.throttles); !strings.Contains(text, `oxbow_throttle_share{backend="local"} 0`) || !strings.Contains(text, `oxbow_throttle_reason{backend="local",probe="canary",state="stop"} 1`) {
		t.Errorf("stopped:\n%s", text)
	}
	configure("canary<2us..1us")
	if err := g.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "throttle: ") {
		t.Errorf("thresholds without sense: %v", err)
	}
}
