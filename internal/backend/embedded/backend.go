package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/engine"
	"oxbow/internal/mongoerr"
	"oxbow/internal/statement"
)

// Store configures the engine below the backend.
type Store = engine.Options

// Stats are the figures of the engine's store.
type Stats = engine.Stats

// Options configure a Backend.
type Options struct {
	Store Store
	// CursorTimeout is how long a cursor that nobody asks lives; 0: 10 minutes, MongoDB's cursorTimeoutMillis.
	CursorTimeout time.Duration
}

const defaultCursorTimeout = 10 * time.Minute

// Backend runs commands on an engine's store.
type Backend struct {
	db      *engine.DB
	dir     string
	onDisk  bool
	log     *slog.Logger
	started time.Time
	cursors *cursors
	usage   *usage

	timestamps statement.Timestamps

	// gate is held for reading while a command runs, for writing by Close.
	gate    sync.RWMutex
	closing atomic.Bool
	stop    chan struct{} // closed by Close, ends the sweep of idle cursors
	swept   chan struct{} // closed when the sweep has ended
}

var _ backend.Backend = (*Backend)(nil)

// Open opens or creates the store and returns a backend on it.
func Open(o Options) (*Backend, error) {
	if o.CursorTimeout <= 0 {
		o.CursorTimeout = defaultCursorTimeout
	}
	if o.Store.Log == nil {
		o.Store.Log = slog.New(slog.DiscardHandler)
	}
	db, err := engine.Open(o.Store)
	if err != nil {
		return nil, err
	}
	b := &Backend{
		db:      db,
		dir:     o.Store.Dir,
		onDisk:  o.Store.FS == nil,
		log:     o.Store.Log,
		started: time.Now(),
		cursors: newCursors(o.CursorTimeout, o.Store.Memory),
		usage:   newUsage(func(name engine.Name) bool { _, ok := db.Table(name); return ok }),
		stop:    make(chan struct{}),
		swept:   make(chan struct{}),
	}
	go b.sweep(o.CursorTimeout)
	return b, nil
}

// sweep closes cursors that nobody asked for too long, until the backend is closed.
func (b *Backend) sweep(timeout time.Duration) {
	defer close(b.swept)
	tick := time.NewTicker(max(min(timeout/4, time.Minute), time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-b.stop:
			return
		case now := <-tick.C:
			if n := b.cursors.closeIdle(now); n > 0 {
				b.log.Info("closed idle cursors", "count", n)
			}
		}
	}
}

// Run runs one command. The error wraps backend.ErrUnavailable, and ShutdownInProgress, once Close has been called.
func (b *Backend) Run(ctx context.Context, req *backend.Request) (bson.Document, error) {
	if b.closing.Load() {
		return nil, errClosed
	}
	b.gate.RLock()
	defer b.gate.RUnlock()
	if b.closing.Load() {
		return nil, errClosed
	}
	reply, err := b.dispatch(operation{Context: ctx, closing: &b.closing}, req)
	if err != nil {
		return errorReply(err), nil
	}
	return reply, nil
}

var errClosed = fmt.Errorf("%w: %w", backend.ErrUnavailable,
	mongoerr.New(mongoerr.ShutdownInProgress, "The server is in quiesce mode and will shut down"))

// dispatch finds the command and runs it.
func (b *Backend) dispatch(op operation, req *backend.Request) (bson.Document, error) {
	name, _, ok := bson.First(req.Body)
	if !ok {
		return nil, mongoerr.New(mongoerr.FailedToParse, "empty command document")
	}
	run, ok := commands[name]
	if !ok {
		return nil, mongoerr.New(mongoerr.CommandNotFound, "no such command: '%s'", name)
	}
	reply, err := run(b, op, req)
	if err != nil {
		return nil, op.explain(err)
	}
	return reply, nil
}

// Abilities says that one write may span namespaces, and that this is the engine of this process.
func (b *Backend) Abilities() backend.Abilities {
	return backend.Abilities{OneBatch: true, Embedded: true}
}

// Stats reads the store's figures: log and tables apart.
func (b *Backend) Stats() Stats { return b.db.Stats() }

// Close lets running commands end with InterruptedAtShutdown where they look, closes every cursor and then the store.
func (b *Backend) Close() error {
	if b.closing.Swap(true) {
		return nil
	}
	b.gate.Lock()
	defer b.gate.Unlock()
	close(b.stop)
	<-b.swept
	b.cursors.closeAll()
	return b.db.Close()
}
