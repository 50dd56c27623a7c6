package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"oxbow/internal/bench/ways"
)

// benchPurgeOptions are the flags of bench purge.
type benchPurgeOptions struct {
	uri, database    string
	serve            bool
	memory           byteSize
	dir              string
	strategies       []string
	inserts, updates perSecondRate
	html             string
	json             bool
	ways.Options
}

func benchPurgeCommand() *cobra.Command {
	o := benchPurgeOptions{inserts: 7000, updates: 5000, memory: 320 << 20}
	c := &cobra.Command{
		Use:   "purge",
		Short: "Every way to let old documents go, on the same data under the same load",
		Long: "Fill a collection with log lines, half of them old, and let the old ones go, with each of the strategies in turn: on the same data, while a foreground inserts,\n" +
			"and updates new and old lines, at given rates. Before each way the foreground is measured without it. At the end a table and strips over time go to\n" +
			"standard output: seconds to finish, documents a second, the foreground's p50 and p99 against idle, disk, oplog, lag, backlog.\n\n" +
			"With --serve the server is this program, in a control group whose memory is --memory, page cache included (that takes root, on Linux), filled once and put back\n" +
			"to that for each way. With --uri it is any MongoDB server; its database --database is filled for each way, and dropped. A run counts only\n" +
			"where the data on the disk is at least 5 times the server's memory; others say that they don't.\n\n" +
			"Ctrl-C stops the way that runs and prints what has been measured.",
		Args: noArguments,
		RunE: untilSignal(func(ctx context.Context, stdout, stderr io.Writer) error {
			return runBenchPurge(ctx, o, stdout, stderr)
		}),
	}
	f := c.Flags()
	f.StringVar(&o.uri, "uri", "", "connection string of a server to measure")
	f.StringVar(&o.database, "database", "oxbow_bench", "with --uri: a database that is empty, and dropped after each way")
	f.BoolVar(&o.serve, "serve", false, "measure this program as the server")
	f.Var(&o.memory, "memory", "with --serve: memory of the server, page cache included")
	f.StringVar(&o.dir, "dir", "", "with --serve: a folder for the data, which is kept there for the next run with the same documents; default: a temporary one, removed at the end")
	f.StringSliceVar(&o.strategies, "strategies", wayNames(), "ways to run, in this order")
	f.Int64Var(&o.Documents, "documents", 20_000_000, "documents at the start, half of them old")
	f.IntVar(&o.Size, "size", 200, "bytes of a document")
	f.Var(&o.inserts, "inserts", "documents that the foreground inserts")
	f.Var(&o.updates, "updates", "documents that the foreground updates, half of them by _id alone")
	f.IntVar(&o.OldUpdate, "old-updates", 20, "percent of the updates that concern lines of the start, the others concern those inserted lately")
	f.DurationVar(&o.Idle, "idle", 30*time.Second, "length of the phase without a way")
	f.DurationVar(&o.Limit, "limit", 5*time.Minute, "what a way may take; then it is stopped")
	f.DurationVar(&o.After, "after", 10*time.Second, "how long to look on when a way has ended; what the foreground feels of it is measured for as long at least")
	f.DurationVar(&o.WarmUp, "warm-up", 5*time.Second, "how long the foreground runs before it is measured")
	f.IntVar(&o.Workers, "workers", 4, "calls of the foreground at a time, of inserts and of updates each")
	f.StringVar(&o.html, "html", "", "also write the result as a page to this file")
	f.BoolVar(&o.json, "json", false, "print the result as JSON")
	c.MarkFlagsMutuallyExclusive("uri", "serve")
	c.MarkFlagsOneRequired("uri", "serve")
	return c
}

func (o *benchPurgeOptions) check() error {
	switch {
	case o.Documents < 10 || o.Documents > 1<<32:
		return errors.New("--documents must be between 10 and 2^32")
	case o.Size < 1 || o.Workers < 1:
		return errors.New("--size and --workers must be at least 1")
	case o.OldUpdate < 0 || o.OldUpdate > 100:
		return errors.New("--old-updates is a number of percent")
	case o.Idle <= 0 || o.Limit <= 0 || o.After <= 0 || o.WarmUp <= 0:
		return errors.New("--idle, --limit, --after and --warm-up must be above 0")
	}
	o.Inserts, o.Updates = int(o.inserts), int(o.updates)
	return nil
}

func runBenchPurge(ctx context.Context, o benchPurgeOptions, stdout, stderr io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	all, err := chooseWays(o.strategies)
	if err != nil {
		return err
	}
	host, done, err := o.host(ctx, stderr)
	if err != nil {
		return err
	}
	result, err := ways.Compare(ctx, o.Options, host, all, showBenchPurge(stderr, all))
	err = errors.Join(err, done())
	if len(result.Runs) == 0 {
		if err == nil {
			err = errors.New("stopped before anything was measured")
		}
		return err
	}
	if o.html != "" {
		err = errors.Join(err, writePage(o.html, result))
	}
	return errors.Join(err, printResult(stdout, o.json, result))
}

// host makes what gives each way its data, and what puts all away.
func (o *benchPurgeOptions) host(ctx context.Context, stderr io.Writer) (ways.Host, func() error, error) {
	if o.serve {
		h, err := newServedHost(o, stderr)
		if err != nil {
			return nil, nil, err
		}
		return h, h.tidy, nil
	}
	client, err := connect(ctx, o.uri)
	if err != nil {
		return nil, nil, err
	}
	return &ways.Server{Client: client, URI: o.uri, Database: o.database}, func() error { return client.Disconnect(context.Background()) }, nil
}

// chooseWays finds ways by their names.
func chooseWays(names []string) ([]ways.Way, error) {
	var chosen []ways.Way
	all := allWays()
	for _, name := range names {
		i := slices.IndexFunc(all, func(w ways.Way) bool { return w.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("--strategies: there is no %q; there are %s", name, strings.Join(wayNames(), ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func wayNames() []string {
	var names []string
	for _, w := range allWays() {
		names = append(names, w.Name)
	}
	return names
}

// showBenchPurge prints a line of progress now and then, and when a phase begins.
func showBenchPurge(w io.Writer, all []ways.Way) func(ways.Progress) {
	var mu sync.Mutex
	var last ways.Progress
	var shown time.Time
	return func(p ways.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if p.Way == last.Way && p.Phase == last.Phase && time.Since(shown) < lineEvery {
			return
		}
		last, shown = p, time.Now()
		i := slices.IndexFunc(all, func(w ways.Way) bool { return w.Name == p.Way })
		fmt.Fprintf(w, "%s (%d of %d), %s\n", p.Way, i+1, len(all), progressText(&p))
	}
}

// progressText tells where a way stands.
func progressText(p *ways.Progress) string {
	text := map[string]string{"fill": "filling", "idle": "the foreground alone", "run": "running", "after": "it has ended", "check": "counting"}[p.Phase]
	if p.Phase == "check" {
		return text
	}
	text += ", " + p.Spent.Round(time.Second).String()
	if p.Total > 0 {
		text += fmt.Sprintf(": %s of %s documents, %d %%", thousands(p.Done), thousands(p.Total), 100*p.Done/p.Total)
		if p.Done > 0 && p.Done < p.Total {
			left := time.Duration(float64(p.Spent) * float64(p.Total-p.Done) / float64(p.Done))
			text += ", ETA " + left.Round(time.Second).String()
		}
	}
	if p.P99 > 0 {
		text += ", p99 " + latency(p.P99)
	}
	return text
}

// perSecondRate is a flag for a number of documents a second: 7000, 7000/s or 420000/m.
type perSecondRate int

func (r *perSecondRate) String() string { return fmt.Sprintf("%d/s", *r) }
func (r *perSecondRate) Type() string   { return "rate" }

func (r *perSecondRate) Set(text string) error {
	number, per := text, 1
	if n, ok := strings.CutSuffix(text, "/s"); ok {
		number = n
	} else if n, ok := strings.CutSuffix(text, "/m"); ok {
		number, per = n, 60
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		return errors.New("write a number of documents a second, such as 7000/s")
	}
	*r = perSecondRate(n / per)
	return nil
}

// byteSize is a flag for a number of bytes, such as 320MiB.
type byteSize int64

func (b *byteSize) String() string { return fmt.Sprintf("%dMiB", *b>>20) }
func (b *byteSize) Type() string   { return "size" }

func (b *byteSize) Set(text string) error {
	for suffix, unit := range map[string]int64{"MiB": 1 << 20, "GiB": 1 << 30} {
		if number, ok := strings.CutSuffix(text, suffix); ok {
			n, err := strconv.ParseInt(number, 10, 32)
			if err == nil && n > 0 {
				*b = byteSize(n * unit)
				return nil
			}
		}
	}
	return errors.New("write a number of MiB or GiB, such as 320MiB")
}
