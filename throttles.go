package oxbow

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/command"
	"oxbow/internal/deployment"
	"oxbow/internal/mongoerr"
	"oxbow/internal/throttle"
)

// throttles are those of a gateway's backends. One begins to look when the first job asks for it: without jobs no probe asks anything.
type throttles struct {
	backends map[string]backend.Backend
	traffic  *throttle.Window // of all clients: they are one application, whatever backend their collections lie on
	looking  atomic.Bool      // whether any throttle looks at it
	canary   backend.Namespace
	log      *slog.Logger

	life context.Context
	end  context.CancelFunc
	run  sync.WaitGroup

	mu struct {
		sync.Mutex
		settings    throttle.Settings
		running     map[string]*throttle.Throttle
		deployments []*deployment.Deployment
	}
}

func newThrottles(backends map[string]backend.Backend, settings throttle.Settings, canary backend.Namespace, log *slog.Logger) *throttles {
	t := &throttles{backends: backends, traffic: throttle.NewWindow(), canary: canary, log: log}
	t.life, t.end = context.WithCancel(context.Background())
	t.mu.settings, t.mu.running = settings, map[string]*throttle.Throttle{}
	return t
}

// of returns the throttle of a backend.
func (t *throttles) of(name string) *throttle.Throttle {
	t.mu.Lock()
	defer t.mu.Unlock()
	if running := t.mu.running[name]; running != nil {
		return running
	}
	d := deployment.Of(name, t.backends[name])
	running := throttle.Of(throttle.On{Deployment: d, Settings: t.mu.settings, Foreground: t.traffic, Canary: t.canary, Log: t.log.With("backend", name)})
	t.mu.running[name] = running
	t.looking.Store(true)
	t.mu.deployments = append(t.mu.deployments, d)
	t.run.Go(func() { running.Run(t.life) })
	return running
}

// all returns those that look.
func (t *throttles) all() map[string]*throttle.Throttle {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.mu.running)
}

// set changes the thresholds of all.
func (t *throttles) set(s throttle.Settings) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.settings.String() == s.String() {
		return
	}
	t.mu.settings = s
	for _, running := range t.mu.running {
		running.SetSettings(s)
	}
}

// close ends the probes. It is called when no job runs any more, and before the backends are closed.
func (t *throttles) close() error {
	t.end()
	t.run.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, d := range t.mu.deployments {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}

// Command implements command.Observer. What nobody looks at is not counted.
func (t *throttles) Command(name string, took time.Duration, code mongoerr.Code) {
	if t.looking.Load() {
		t.traffic.Command(name, took, code)
	}
}

// observers are told of each command, one after the other.
type observers []command.Observer

// Command implements command.Observer.
func (all observers) Command(name string, took time.Duration, code mongoerr.Code) {
	for _, o := range all {
		o.Command(name, took, code)
	}
}
