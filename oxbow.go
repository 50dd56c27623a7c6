// Package oxbow is a gateway for MongoDB collections that outgrow MongoDB's defaults, as a library: Open starts one in the
// process, and any MongoDB driver reaches it at its address.
//
//	g, err := oxbow.Open(ctx, oxbow.Options{File: "oxbow.yaml"})
//	if err != nil { … }
//	defer g.Close(ctx)
//	client, err := mongo.Connect(options.Client().ApplyURI(g.URI()))
//
// The command oxbow (cmd/oxbow) is this package with flags.
package oxbow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"oxbow/internal/admin"
	"oxbow/internal/backend"
	"oxbow/internal/catalog"
	"oxbow/internal/command"
	"oxbow/internal/config"
	"oxbow/internal/cursor"
	"oxbow/internal/exec"
	"oxbow/internal/maintain"
	"oxbow/internal/maintain/partition"
	"oxbow/internal/memory"
	"oxbow/internal/observe"
	"oxbow/internal/server"
)

// Options say what to open.
type Options struct {
	// File is the configuration (docs/configuration.md); "" serves 127.0.0.1:27017 from ./data.
	File string
	// Config is the text of a configuration, in place of File.
	Config []byte
	// Listen replaces the configuration's address: host:port on loopback, port 0 for any, or the path of a Unix socket.
	Listen string
	// Log gets the gateway's log; nil discards it.
	Log slog.Handler
	// UpkeepEvery is the longest time between two looks at what retention has to do, which also looks when a step becomes due; 0: 10 s.
	UpkeepEvery time.Duration

	stallTimeout time.Duration    // of the server, for tests
	now          func() time.Time // for tests; nil: time.Now
	fs           vfs.FS           // of embedded backends, for tests; nil: the disk
}

// Gateway is a running gateway.
type Gateway struct {
	options   Options
	log       *slog.Logger
	backends  map[string]backend.Backend
	memory    config.Memory
	budget    *memory.Budget // of memory.Clients
	catalog   *catalog.Catalog
	lanes     *exec.Lanes
	server    *server.Server
	table     *command.Table
	doors     *doors
	admin     *admin.Server // nil: HTTP is not served
	runner    *partition.Runner
	throttles *throttles
	jobs      *jobs
	stop      context.CancelFunc
	stopping  atomic.Bool
	done      chan struct{} // closed when upkeep has ended
	failed    chan error    // what Serve returned
}

// Open checks the configuration, opens the backends and serves. Nothing has been started when it returns an error.
func Open(ctx context.Context, o Options) (*Gateway, error) {
	cfg, err := o.load()
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.DiscardHandler
	}
	if o.now == nil {
		o.now = time.Now
	}
	recent := command.NewRecentLog(o.Log)
	g := &Gateway{options: o, log: slog.New(recent), done: make(chan struct{}), failed: make(chan error, 1)}
	if g.memory, err = divideMemory(cfg, g.log); err != nil {
		return nil, fmt.Errorf("divide memory: %w", err)
	}
	g.budget = memory.New(g.memory.Clients)
	g.lanes = exec.NewLanes(cfg.Fanout)
	if g.doors, err = openDoors(cfg); err != nil {
		return nil, err
	}
	if g.backends, err = g.openBackends(cfg); err == nil {
		g.catalog, err = catalog.Open(ctx, catalog.Options{Config: cfg, Backends: g.backends, Log: g.log, Now: o.now})
	}
	if err != nil {
		return nil, errors.Join(err, g.doors.close(), closeBackends(g.backends))
	}
	g.serve(recent, cfg)
	return g, nil
}

// load reads the configuration that the options name.
func (o *Options) load() (*config.Config, error) {
	cfg := config.Default()
	var err error
	switch {
	case o.Config != nil:
		cfg, err = config.Parse("configuration", o.Config)
	case o.File != "":
		cfg, err = config.Load(o.File)
	}
	if err == nil {
		err = CheckJobs(cfg)
	}
	if err != nil {
		return nil, err
	}
	if o.Listen != "" {
		cfg.Listen = o.Listen
	}
	return cfg, nil
}

// serve starts to answer clients and to look after partitions.
func (g *Gateway) serve(recent *command.RecentLog, cfg *config.Config) {
	counters := &command.Counters{}
	cursors := cursor.NewRegistry(cursor.IdleTimeout, g.budget)
	sessions := cursor.NewSessions(cursor.SessionTimeout)
	g.table = command.New(command.Deps{
		Log: g.log, RecentLog: recent, Now: g.options.now, Counters: counters, Cursors: cursors, Sessions: sessions,
		Server:  about(g.doors.clients.Addr()),
		Servers: func() backend.Servers { return backend.Weakest(g.backends) },
		Memory:  g.budget,
		Users:   g.catalog, Authorize: cfg.Authorize, Slow: cfg.Slow, KillAbandoned: cfg.KillAbandoned,
		Sections: []command.StatusSection{{Name: "oxbow", Append: g.appendStatus}},
	})
	g.throttles = newThrottles(g.backends, cfg.Throttle, backend.Namespace{Database: cfg.CatalogDatabase(), Collection: "canary"}, g.log)
	started := g.options.now()
	g.runner = partition.New(partition.Options{
		Catalog: g.catalog, Log: g.log, Every: g.options.UpkeepEvery, BackendTime: partition.HelloTime(g.backends),
		Clock: func() (time.Time, time.Duration) { now := g.options.now(); return now, now.Sub(started) },
		Pace:  func(name string) maintain.Throttle { return g.throttles.of(name).DropPace(maintain.Limits{}) },
	})
	g.jobs = g.newJobs(cfg)
	g.jobs.runner.Set(specsOf(cfg))
	g.table.RegisterJobs(jobCommands{g.jobs})
	g.table.RegisterData(&command.Data{
		Catalog: g.catalog, Cursors: cursors, Now: g.options.now, Upkeep: upkeep{g.runner},
		Exec: &exec.Executor{Backends: g.backends, Gone: g.gone, Sends: sendsOf(g.catalog), Width: g.width, Lanes: g.lanes, Memory: g.budget},
	})
	metrics := observe.New(g.table.Names())
	metrics.Add(observe.NewFigures(observe.Sources{
		Counters: counters, Table: g.table, Cursors: cursors, Sessions: sessions, Memory: g.budget, Catalog: g.catalog.Snapshot, Sharing: g.catalog.Sharing, Now: g.options.now,
	}))
	metrics.Add(&observe.Backends{Remote: g.remote(), Lanes: g.lanes})
	metrics.Add(&observe.Throttles{Running: g.throttles.all})
	metrics.Add(&observe.Jobs{Latest: g.jobs.latest})
	metrics.Add(g.jobs.policies)
	g.table.Observe(observers{metrics, g.throttles})
	g.table.SetLimits(tableLimits(cfg))
	g.server = server.New(g.doors.clients, g.table, counters, g.log, server.Options{Limits: serverLimits(cfg), Memory: g.budget, TLS: g.doors.tls, StallTimeout: g.options.stallTimeout})
	running, stop := context.WithCancel(context.Background())
	g.stop = stop
	go func() {
		defer close(g.done)
		var upkeep sync.WaitGroup
		upkeep.Go(func() { g.catalog.Keep(running) })
		upkeep.Go(func() { g.runner.Run(running) })
		upkeep.Go(func() { g.jobs.runner.Run(running) })
		upkeep.Wait()
	}()
	go func() { g.failed <- g.server.Serve() }()
	g.log.Info("serving", "address", g.Addr().String())
	g.serveHTTP(metrics)
}

// Addr is the address that clients connect to.
func (g *Gateway) Addr() net.Addr { return g.server.Addr() }

// URI is a connection string for clients on this machine; the path of a Unix socket is escaped, as connection strings want it.
func (g *Gateway) URI() string {
	host := g.Addr().String()
	if g.Addr().Network() == "unix" {
		host = url.PathEscape(host)
	}
	return "mongodb://" + host
}

// Failed gives the error that ended the serving, if one does; nil after Close.
func (g *Gateway) Failed() <-chan error { return g.failed }

// Reload reads the configuration file again and applies it, or refuses it whole and goes on with the one it has.
func (g *Gateway) Reload(ctx context.Context) error {
	cfg, err := g.options.load()
	if err != nil {
		return err
	}
	certificates := func() {}
	if g.doors.tls != nil {
		if certificates, err = g.doors.tls.Read(); err != nil {
			return fmt.Errorf("reload: %w", err)
		}
	}
	if err := g.catalog.Reload(ctx, cfg); err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	certificates()
	g.table.SetLimits(tableLimits(cfg))
	g.server.SetLimits(serverLimits(cfg))
	g.lanes.SetLimit(cfg.Fanout)
	g.throttles.set(cfg.Throttle)
	g.jobs.runner.Set(specsOf(cfg))
	g.log.Info("configuration reloaded", "file", g.options.File)
	return nil
}

// Close stops: new commands are refused, running ones finish until ctx ends and are interrupted then, backends are closed.
func (g *Gateway) Close(ctx context.Context) error {
	g.stopping.Store(true)
	err := g.server.Shutdown(ctx)
	if g.admin != nil {
		err = errors.Join(err, g.admin.Close(ctx))
	}
	g.stop()
	<-g.done
	return errors.Join(err, g.jobs.close(), g.throttles.close(), closeBackends(g.backends))
}
