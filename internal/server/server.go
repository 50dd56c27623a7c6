package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"oxbow/internal/command"
	"oxbow/internal/memory"
	"oxbow/internal/mongoerr"
)

// Options tell how to serve. Zero values stand for the defaults.
type Options struct {
	// Limits of connections at once: one more is told so and closed. Without a total it is 20,000.
	Limits Limits
	// StallTimeout lets a client go that sends nothing for this long in the middle of a message, or takes nothing
	// of a reply. Default 30 s. Between messages a client may be silent for ever.
	StallTimeout time.Duration
	// GoneEvery is how often the clients of running reads are looked after. Default 250 ms.
	GoneEvery time.Duration
	// SweepEvery is how often idle cursors and sessions are looked for. Default 4 s, as in MongoDB.
	SweepEvery time.Duration
	// Memory is the budget of messages and replies. Nil: without limit.
	Memory *memory.Budget
	// TLS encrypts connections; nil: they are not.
	TLS *TLS
}

func (o *Options) setDefaults() {
	if o.StallTimeout == 0 {
		o.StallTimeout = 30 * time.Second
	}
	if o.GoneEvery == 0 {
		o.GoneEvery = 250 * time.Millisecond
	}
	if o.SweepEvery == 0 {
		o.SweepEvery = 4 * time.Second
	}
}

// messageTimeout bounds how long one message may take, however steadily its bytes drip.
const messageTimeout = 10 * time.Minute

// Server serves one listener.
type Server struct {
	options  Options
	table    *command.Table
	counters *command.Counters
	log      *slog.Logger
	listener net.Listener

	base      context.Context // of every command; ends when the grace of a stop is over
	interrupt context.CancelCauseFunc
	stopping  chan struct{}
	stopOnce  sync.Once
	wait      sync.WaitGroup // connections, watchers
	replyID   atomic.Int32
	refusing  chan struct{} // slots for connections that are being told that there are too many
	mu        struct {
		sync.Mutex
		stopped bool
		lastID  int64
		conns   map[*conn]bool
		// addresses has the number of connections by where they come from.
		addresses map[netip.Prefix]int
		limits    Limits
	}
}

// New returns a server for a listener from Listen. It owns the listener from now on.
func New(listener net.Listener, table *command.Table, counters *command.Counters, log *slog.Logger, options Options) *Server {
	options.setDefaults()
	s := &Server{
		options: options, table: table, counters: counters, log: log, listener: listener,
		stopping: make(chan struct{}), refusing: make(chan struct{}, 16),
	}
	s.base, s.interrupt = context.WithCancelCause(context.Background())
	s.mu.conns = make(map[*conn]bool)
	s.mu.addresses = make(map[netip.Prefix]int)
	s.SetLimits(options.Limits)
	return s
}

// Addr is where it listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve accepts connections until Shutdown is called, and then returns nil; connections may outlast it.
func (s *Server) Serve() error {
	if !s.watch() {
		return nil
	}
	pause := time.Duration(0)
	for {
		nc, err := s.listener.Accept()
		if err == nil {
			pause = 0
			s.accept(nc)
			continue
		}
		select {
		case <-s.stopping:
			return nil
		default:
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accept: %w", err)
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		s.log.Warn("cannot accept a connection", "error", err, "pause", pause)
		select {
		case <-time.After(pause):
		case <-s.stopping:
			return nil
		}
	}
}

// watch starts what looks after connections, cursors and sessions, and reports false when the server is stopping already.
func (s *Server) watch() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.stopped {
		return false
	}
	s.wait.Go(func() { s.every(s.options.GoneEvery, s.abandonGone) })
	s.wait.Go(func() { s.every(s.options.SweepEvery, s.table.Sweep) })
	return true
}

// every calls do at intervals until the server stops.
func (s *Server) every(interval time.Duration, do func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			do()
		case <-s.stopping:
			return
		}
	}
}

// accept starts a connection, or turns it away.
func (s *Server) accept(nc net.Conn) {
	from := placeOf(nc)
	s.mu.Lock()
	if s.mu.stopped {
		s.mu.Unlock()
		nc.Close()
		return
	}
	// Under the lock, so that Shutdown never waits before this is counted.
	s.wait.Add(1)
	refused := s.mu.limits.refuse(len(s.mu.conns), from, s.mu.addresses[from])
	var c *conn
	if refused == nil {
		s.mu.lastID++
		if s.options.TLS != nil {
			nc = s.options.TLS.serve(nc)
		}
		c = newConn(s, nc, s.mu.lastID)
		c.from = from
		s.mu.conns[c] = true
		s.mu.addresses[from]++
	}
	s.mu.Unlock()
	if refused != nil {
		s.turnAway(nc, refused)
		return
	}
	s.counters.ConnectionsTotal.Add(1)
	s.counters.ConnectionsCurrent.Add(1)
	s.table.Connect(&c.client)
	go c.run()
}

// turnAway tells a client that there are too many connections. Only a few are told at a time, and none whose connection would have to be
// encrypted first; beyond those, the connection just closes, as MongoDB's does.
func (s *Server) turnAway(nc net.Conn, r *refusal) {
	s.counters.ConnectionsRejected.Add(1)
	s.table.Refuse(r.limit, "remote", remoteOf(nc), "limit", r.most)
	told := s.options.TLS == nil
	if told {
		select {
		case s.refusing <- struct{}{}:
		default:
			told = false
		}
	}
	if !told {
		nc.Close()
		s.wait.Done()
		return
	}
	go func() {
		defer s.wait.Done()
		defer func() { <-s.refusing }()
		defer nc.Close()
		nc.SetReadDeadline(time.Now().Add(time.Second))
		c := newConn(s, nc, 0)
		c.refuse(r.err())
	}()
}

// remove forgets a connection that has ended.
func (s *Server) remove(c *conn) {
	s.mu.Lock()
	delete(s.mu.conns, c)
	if s.mu.addresses[c.from]--; s.mu.addresses[c.from] <= 0 {
		delete(s.mu.addresses, c.from)
	}
	s.mu.Unlock()
	s.table.Disconnect(&c.client)
	s.counters.ConnectionsCurrent.Add(-1)
	s.wait.Done()
}

// connections returns those that match.
func (s *Server) connections(match func(*conn) bool) []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*conn
	for c := range s.mu.conns {
		if match(c) {
			out = append(out, c)
		}
	}
	return out
}

// abandonGone ends the running commands that end with their clients, which have closed their connection.
func (s *Server) abandonGone() {
	before := time.Now().Add(-s.options.GoneEvery)
	ops := s.table.Operations()
	for _, c := range s.connections((*conn).isBusy) {
		if ops.Abandonable(&c.client, before) && isGone(c.nc) {
			ops.Abandon(&c.client)
		}
	}
}

// How often and how long Shutdown looks whether the running commands have ended.
const (
	idlePoll       = 5 * time.Millisecond
	interruptGrace = 5 * time.Second
)

// Shutdown stops: it accepts nothing more, has new commands refused with ShutdownInProgress, and waits for the running ones. When ctx ends first,
// they are interrupted; that some still run five seconds later is logged. Then it closes all connections, waits until their goroutines have ended,
// and closes the cursors. The error is ctx's, when commands had to be interrupted.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopOnce.Do(func() {
		s.mu.Lock()
		s.mu.stopped = true
		s.mu.Unlock()
		close(s.stopping)
		s.table.Drain() // before: whoever sees that nobody is let in any more is refused as well
		s.listener.Close()
	})
	err := s.awaitIdle(ctx)
	s.interrupt(mongoerr.New(mongoerr.InterruptedAtShutdown, "interrupted at shutdown"))
	if err != nil {
		s.log.Warn("interrupting the commands that still run", "commands", s.table.Operations().Running())
		after, cancel := context.WithTimeout(context.Background(), interruptGrace)
		defer cancel()
		if s.awaitIdle(after) != nil {
			s.log.Error("commands do not end", "commands", s.table.Operations().Running())
		}
	}
	for _, c := range s.connections(func(*conn) bool { return true }) {
		c.nc.Close()
	}
	s.wait.Wait()
	s.table.Close()
	return err
}

// awaitIdle waits until no connection runs a command.
func (s *Server) awaitIdle(ctx context.Context) error {
	ticker := time.NewTicker(idlePoll)
	defer ticker.Stop()
	for len(s.connections((*conn).isBusy)) > 0 {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for running commands: %w", ctx.Err())
		}
	}
	return nil
}
