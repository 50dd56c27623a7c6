package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oxbow/internal/bench"
)

// benchOptions are the flags of bench log.
type benchOptions struct {
	uri, ns string
	json    bool
	bench.Options
}

func benchCommand() *cobra.Command {
	c := &cobra.Command{Use: "bench", Short: "Put a load on a MongoDB server and measure what its clients feel", Args: cobra.NoArgs, RunE: help}
	c.AddCommand(benchLogCommand(), benchIMCommand(), benchPurgeCommand())
	return c
}

func benchLogCommand() *cobra.Command {
	var o benchOptions
	c := &cobra.Command{
		Use:   "log",
		Short: "The load of an operations-log store: inserts and updates at given rates",
		Long: "Insert log lines and update them at given rates, on Oxbow or any other MongoDB server, through the official driver.\n\n" +
			"A line has _id (an ObjectId), time (whole seconds), dev, level, state and text; indexes are made on time and dev. Lines are inserted as collectors\n" +
			"of logs do, unordered by insertMany; updates set state on lines inserted lately, as unordered bulk writes, every other one by _id alone and the others\n" +
			"by _id and time. A layout, if there should be one, is the gateway's configuration; without it the collection is a plain one.\n\n" +
			"The load is open-loop: each call has its time, and its latency counts from then, so a server that stalls shows as latency and as calls not begun.\n" +
			"Progress goes to standard error every 5 seconds. At the end, or after ctrl-C, a table goes to standard output: rates asked and held, latencies, and\n" +
			"the 99th percentile of inserts in the seconds in which a partition was dropped, against the others.",
		Args: noArguments,
		RunE: untilSignal(func(ctx context.Context, stdout, stderr io.Writer) error { return runBench(ctx, o, stdout, stderr) }),
	}
	f := c.Flags()
	f.StringVar(&o.uri, "uri", defaultURI, "connection string")
	f.StringVar(&o.ns, "ns", "fla.logGset", "namespace, DATABASE.COLLECTION")
	f.IntVar(&o.Inserts, "inserts", 400_000, "documents inserted a minute; 0: none")
	f.IntVar(&o.Updates, "updates", 300_000, "documents updated a minute; 0: none")
	f.DurationVar(&o.Duration, "duration", 10*time.Minute+30*time.Second, "length of the load; 0: until ctrl-C")
	f.IntVar(&o.Batch, "batch", 250, "documents an insert")
	f.IntVar(&o.UpdateBatch, "update-batch", 100, "updates a bulk write; 1: single updates")
	f.IntVar(&o.Workers, "workers", 4, "calls at a time, of inserts and of updates each")
	f.IntVar(&o.Size, "size", 200, "bytes of a document")
	f.StringVar(&o.TimeField, "time-field", "time", "name of the field with the time, as in the collection's layout")
	f.IntVar(&o.Devices, "devices", 10_000, "different values of dev")
	f.DurationVar(&o.Recent, "recent", 30*time.Second, "updates concern documents inserted in that time before; keep it below the layout's keep")
	f.BoolVar(&o.json, "json", false, "print the result as JSON")
	return c
}

func (o *benchOptions) check() error {
	for name, n := range map[string]int{"inserts": o.Inserts, "updates": o.Updates} {
		if n < 0 {
			return fmt.Errorf("--%s must not be negative", name)
		}
	}
	for name, n := range map[string]int{
		"batch": o.Batch, "update-batch": o.UpdateBatch, "workers": o.Workers, "size": o.Size, "devices": o.Devices,
	} {
		if n < 1 {
			return fmt.Errorf("--%s must be at least 1", name)
		}
	}
	if f := o.TimeField; f == "" || strings.ContainsAny(f, ".$") || slices.Contains([]string{"_id", "dev", "level", "state", "text"}, f) {
		return fmt.Errorf("--time-field %q: a field of its own at the top of a document", f)
	}
	if o.Duration < 0 || o.Recent <= 0 {
		return errors.New("--duration must not be negative, and --recent above 0")
	}
	return nil
}

func runBench(ctx context.Context, o benchOptions, stdout, stderr io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	collection, err := openCollection(ctx, o.uri, o.ns)
	if err != nil {
		return err
	}
	defer collection.Database().Client().Disconnect(context.Background())
	b, err := bench.Start(ctx, collection, o.Options)
	if err != nil {
		return err
	}
	showBench(b, stderr)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	result, err := b.Wait(ctx)
	return errors.Join(err, printResult(stdout, o.json, result))
}

// printResult prints what a load came to, for people or for a program.
func printResult(w io.Writer, asJSON bool, result interface{ Print(io.Writer) error }) error {
	if !asJSON {
		return result.Print(w)
	}
	return printJSON(w, result)
}

// showBench prints a line of progress now and then until the load has ended.
func showBench(b *bench.Bench, w io.Writer) {
	start, before := time.Now(), bench.Totals{}
	ticker := time.NewTicker(lineEvery)
	defer ticker.Stop()
	for {
		select {
		case <-b.Done():
			return
		case <-ticker.C:
		}
		now := b.Totals()
		made, dropped, err := countEvents(b)
		fmt.Fprintf(w, "%s: inserts %s/s, p99 %s; updates %s/s; %d failed; partitions %d made, %d dropped\n", time.Since(start).Round(time.Second),
			perSecond(now.Inserted-before.Inserted, lineEvery), latency(b.InsertP99(lineEvery)), perSecond(now.Updated-before.Updated, lineEvery),
			now.Failed, made, dropped)
		if err != nil {
			fmt.Fprintln(w, err)
		}
		before = now
	}
}

// countEvents counts the partitions that the gateway made and dropped so far.
func countEvents(b *bench.Bench) (made, dropped int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lineEvery)
	defer cancel()
	events, err := b.Events(ctx)
	for _, e := range events {
		switch {
		case e.Did("made"):
			made++
		case e.Did("dropped"):
			dropped++
		}
	}
	return made, dropped, err
}

func perSecond(n int64, in time.Duration) string {
	return fmt.Sprintf("%.0f", float64(n)/in.Seconds())
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}

// latency writes a latency, which is "-" where no call has ended.
func latency(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return milliseconds(d)
}
