package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Options say what is served.
type Options struct {
	Metrics prometheus.Gatherer
	// Ready says why the gateway can't serve commands, or nil.
	Ready func(ctx context.Context) error
	// Jobs gives the jobs as they stand, as a value for JSON.
	Jobs func(ctx context.Context) (any, error)
	// Token is what "Authorization: Bearer …" must carry; "": everybody is let in.
	Token string
	Log   *slog.Logger
}

// Server serves one listener.
type Server struct {
	http     *http.Server
	listener net.Listener
	log      *slog.Logger
	done     chan struct{}
}

// Serve starts to serve. It owns the listener from now on.
func Serve(listener net.Listener, o Options) *Server {
	mux := http.NewServeMux()
	// A figure that can't be read is logged, and the others are served.
	metrics := promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelError), ErrorHandling: promhttp.ContinueOnError}
	mux.Handle("GET /metrics", guarded(o.Token, promhttp.HandlerFor(o.Metrics, metrics)))
	mux.Handle("GET /jobs", guarded(o.Token, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answerJobs(w, r, o) })))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { answerReady(w, r, o) })
	s := &Server{
		http: &http.Server{
			Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
			MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
		},
		listener: listener, log: o.Log, done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("serving HTTP ended", "error", err)
		}
	}()
	return s
}

// answerJobs tells how the jobs stand.
func answerJobs(w http.ResponseWriter, r *http.Request, o Options) {
	jobs, err := o.Jobs(r.Context())
	if err != nil {
		http.Error(w, "the jobs can't be read: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	text, err := json.MarshalIndent(jobs, "", "  ")
	if err != nil {
		o.Log.Error("the jobs can't be shown", "error", err)
		http.Error(w, "the jobs can't be shown", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(append(text, '\n'))
}

// answerReady tells the reason to those who hold the token only: it may name what others should not know.
func answerReady(w http.ResponseWriter, r *http.Request, o Options) {
	err := o.Ready(r.Context())
	switch {
	case err == nil:
		fmt.Fprintln(w, "ready")
	case allowed(o.Token, r):
		http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
	default:
		http.Error(w, "not ready", http.StatusServiceUnavailable)
	}
}

// guarded lets those in who bring the token.
func guarded(token string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !allowed(token, r) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func allowed(token string, r *http.Request) bool {
	if token == "" {
		return true
	}
	got, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	// Hashes have one length, so that the time tells nothing of the token's.
	a, b := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(got))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// Addr is where it listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close stops, and waits until ctx ends for requests that are being answered.
func (s *Server) Close(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("stop serving HTTP: %w", err), s.http.Close())
	}
	<-s.done
	return err
}
