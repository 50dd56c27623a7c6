package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"golang.org/x/term"

	"oxbow"
	"oxbow/internal/bench"
)

// demoOptions are the flags of demo.
type demoOptions struct {
	length           time.Duration
	inserts, updates int // a second
	plain            bool
}

// demoKeep is how long the demonstration keeps documents.
const demoKeep = time.Minute

// demoLate is how far back devices of the demonstration send: less than demoKeep, so that nothing is refused, and enough for a partition of
// the minute before the start, which is dropped at the next full minute.
const demoLate = 50 * time.Second

// demoRecent is how far back updates of the demonstration reach: with demoLate less than demoKeep, so that they find their documents.
const demoRecent = 5 * time.Second

func demoCommand() *cobra.Command {
	var o demoOptions
	c := &cobra.Command{
		Use:   "demo",
		Short: "Serve in a temporary folder, put a load on it and show partitions come and go",
		Long: "Serve on a free port from a temporary folder, with one collection, demo.log, that is split by the minute and keeps a minute. Log lines are inserted and\n" +
			"updated at a moderate rate, and partitions are shown as they are made, hidden and dropped: live on a terminal, elsewhere as lines. The first is dropped\n" +
			"75 seconds after the start at the latest. It ends after --for, or with q or ctrl-C, prints what it came to, and removes the folder.\n\n" +
			"Any MongoDB client can look on meanwhile; the address is shown.",
		Args: noArguments,
		RunE: untilSignal(func(ctx context.Context, stdout, _ io.Writer) error { return runDemo(ctx, o, stdout) }),
	}
	c.Flags().DurationVar(&o.length, "for", 3*time.Minute, "how long; 0: until q or ctrl-C")
	c.Flags().IntVar(&o.inserts, "inserts", 2000, "documents inserted a second")
	c.Flags().IntVar(&o.updates, "updates", 500, "documents updated a second")
	c.Flags().BoolVar(&o.plain, "plain", false, "lines instead of the live view on a terminal")
	return c
}

// demo is a running demonstration.
type demo struct {
	gateway    *oxbow.Gateway
	uri        string
	client     *mongo.Client
	partitions *partitions
	bench      *bench.Bench
	started    time.Time
	length     time.Duration
}

func runDemo(ctx context.Context, o demoOptions, stdout io.Writer) (err error) {
	if o.inserts < 1 || o.updates < 0 || o.length < 0 {
		return errors.New("--inserts must be at least 1, --updates and --for not negative")
	}
	dir, err := os.MkdirTemp("", "oxbow-demo-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	loading, stop := context.WithCancel(ctx)
	defer stop()
	d, err := startDemo(loading, o, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if f, ok := stdout.(*os.File); ok && !o.plain && term.IsTerminal(int(f.Fd())) {
		err = d.showLive(ctx, f)
	} else {
		d.showLines(ctx, stdout)
	}
	stop()
	return errors.Join(err, d.summary(stdout))
}

// startDemo serves from a folder and begins with the load.
func startDemo(ctx context.Context, o demoOptions, dir string) (*demo, error) {
	g, err := oxbow.Open(ctx, oxbow.Options{Config: demoConfig(dir), UpkeepEvery: time.Second})
	if err != nil {
		return nil, err
	}
	g.LimitProcess()
	g.ShareProcessors()
	d := &demo{gateway: g, uri: g.URI(), length: o.length}
	if d.client, err = connect(ctx, d.uri); err != nil {
		return nil, errors.Join(err, d.close())
	}
	database := d.client.Database("demo")
	d.partitions = &partitions{d.client, database, "log"}
	d.bench, err = bench.Start(ctx, database.Collection("log"), bench.Options{
		Inserts: o.inserts * 60, Updates: o.updates * 60, Duration: o.length, Batch: 50, UpdateBatch: 25, Workers: 2, Late: demoLate, Recent: demoRecent,
	})
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	d.started = time.Now()
	return d, nil
}

func demoConfig(dir string) []byte {
	return fmt.Appendf(nil, `listen: 127.0.0.1:0
backends:
  local: {embedded: %q, cache: 64MiB}
collections:
  demo.log:
    time: {field: time, unit: s, every: minute}
    keep: %s
    hold: 0s
    ahead: 2
`, dir, demoKeep)
}

func (d *demo) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var err error
	if d.client != nil {
		err = d.client.Disconnect(ctx)
	}
	return errors.Join(err, d.gateway.Close(ctx))
}

// invitation says how to look on.
func (d *demo) invitation() []string {
	return []string{
		fmt.Sprintf("mongosh %s/demo", d.uri),
		"    db.log.countDocuments()          all of it, one collection",
		"    db.log.explain().find({time: {$gt: Math.floor(Date.now() / 1000) - 20}})",
		fmt.Sprintf("%s partitions list demo.log --uri %s", program(os.Args[0]), d.uri),
	}
}

// program is how a person calls this program again, which go run puts into a folder that is gone afterwards.
func program(path string) string {
	if strings.Contains(path, "go-build") {
		return "go run ./cmd/oxbow"
	}
	return path
}

// summary prints what the demonstration came to.
func (d *demo) summary(w io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := d.bench.Wait(ctx)
	if r.Partitions == nil {
		return err
	}
	t := d.bench.Totals()
	fmt.Fprintf(w, "\n%s of load: %s documents inserted, %s updated, %s failed\n", time.Duration(r.Seconds*float64(time.Second)).Round(time.Second),
		thousands(t.Inserted+r.First), thousands(t.Updated), thousands(t.Failed))
	fmt.Fprintf(w, "partitions: %d made ahead of time, %d dropped", r.Partitions.Made, r.Partitions.Dropped)
	for i, e := range r.Partitions.Drops {
		before := ", "
		if i == 0 {
			before = ", in "
		}
		fmt.Fprint(w, before, milliseconds(e.Took()))
	}
	fmt.Fprintln(w)
	for _, g := range []struct {
		name string
		bench.WindowGroup
	}{{"seconds in which a partition was dropped", r.Windows.Dropped}, {"seconds in which partitions were made", r.Windows.Made}, {"other seconds", r.Windows.Others}} {
		if g.Windows == 0 {
			continue
		}
		fmt.Fprintf(w, "%s: %d, p99 of inserts %s\n", g.name, g.Windows, latency(time.Duration(g.P99)*time.Microsecond))
	}
	return err
}
