package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Print writes a result as tables for people.
func (r *Result) Print(w io.Writer) error {
	p := &printer{w: w}
	p.line("%s of load on %s, a server that answers as MongoDB %s, from %s", seconds(r.Seconds), r.Namespace, r.Server, r.Started.UTC().Format(time.RFC3339))
	p.line("documents of %d bytes; inserts of %d, updates of %d a call, %d workers each; latencies are of calls, from when each was meant to begin",
		r.Size, r.Batch, r.Updates, r.Workers)
	p.line("")
	p.kinds(r.Kinds)
	p.line("")
	p.windows(r.Windows)
	p.partitions(r.Partitions)
	if s := r.Storage; s != nil {
		p.line("store: %s in tables, %s in the log", megabytes(s.TableBytes), megabytes(s.LogBytes))
	}
	for _, text := range slices.Sorted(maps.Keys(r.Errors)) {
		p.line("error, %d times: %s", r.Errors[text], text)
	}
	return p.err
}

// printer keeps the first error of its writes.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) table(rows [][]string) {
	table := tabwriter.NewWriter(p.w, 0, 4, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		fmt.Fprintln(table, strings.Join(row, "\t")+"\t")
	}
	if err := table.Flush(); p.err == nil {
		p.err = err
	}
}

func (p *printer) kinds(all []KindResult) {
	rows := [][]string{{"", "asked/min", "held/min", "calls", "p50", "p90", "p99", "p99.9", "max", "failed", "unmatched", "calls not begun"}}
	for _, k := range all {
		rows = append(rows, []string{
			k.Kind, fmt.Sprintf("%.0f", k.Asked), fmt.Sprintf("%.0f", k.Held), fmt.Sprint(k.Calls), micros(k.P50), micros(k.P90), micros(k.P99),
			micros(k.P999), micros(k.Max), fmt.Sprint(k.Failed), fmt.Sprint(k.Unmatched), fmt.Sprint(k.NotBegun),
		})
	}
	p.table(rows)
}

func (p *printer) windows(r WindowResult) {
	rows := [][]string{{"inserts by windows of 1 s", "windows", "p99", "90 % of their p99 below", "worst p99"}}
	for _, g := range []struct {
		name string
		WindowGroup
	}{{"a partition was dropped", r.Dropped}, {"partitions were made", r.Made}, {"others", r.Others}} {
		row := []string{g.name, fmt.Sprint(g.Windows), "-", "-", "-"}
		if g.Windows > 0 {
			row = append(row[:2], micros(g.P99), micros(g.P90), micros(g.Worst))
		}
		rows = append(rows, row)
	}
	p.table(rows)
	p.line("")
}

func (p *printer) partitions(r *PartitionResult) {
	if r == nil {
		p.line("partitions: none: the server is no gateway, or the collection has no layout")
		return
	}
	p.line("partitions: %d made ahead, %d hidden, %d dropped, %d attempts failed", r.Made, r.Hidden, r.Dropped, r.Failed)
	if len(r.Drops) > 0 {
		works := make([]string, len(r.Drops))
		for i, e := range r.Drops {
			works[i] = micros(e.Micros)
		}
		p.line("work of each drop: %s", strings.Join(works, ", "))
	}
	if r.Stopped != "" {
		p.line("retention stopped: %s", r.Stopped)
	}
}

// micros writes microseconds as milliseconds.
func micros(n int64) string { return fmt.Sprintf("%.1f ms", float64(n)/1000) }

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

func seconds(n float64) string {
	return time.Duration(n * float64(time.Second)).Round(100 * time.Millisecond).String()
}
