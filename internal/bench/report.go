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
	p := &printer{&Printer{W: w}}
	p.Line("%s of load on %s, a server that answers as MongoDB %s, from %s", Seconds(r.Seconds), r.Namespace, r.Server, r.Started.UTC().Format(time.RFC3339))
	p.Line("documents of %d bytes; inserts of %d, updates of %d a call, %d workers each; latencies are of calls, from when each was meant to begin",
		r.Size, r.Batch, r.Updates, r.Workers)
	p.Line("")
	p.kinds(r.Kinds)
	p.Line("")
	p.windows(r.Windows)
	p.partitions(r.Partitions)
	if s := r.Storage; s != nil {
		p.Line("store: %s in tables, %s in the log", Megabytes(s.TableBytes), Megabytes(s.LogBytes))
	}
	p.Errors(r.Errors)
	return p.Err
}

// Printer writes lines and tables, and keeps the first error of its writes.
type Printer struct {
	W   io.Writer
	Err error
}

// Line writes a line.
func (p *Printer) Line(format string, args ...any) {
	if p.Err == nil {
		_, p.Err = fmt.Fprintf(p.W, format+"\n", args...)
	}
}

// Table writes rows whose cells stand below each other, at the right.
func (p *Printer) Table(rows [][]string) {
	table := tabwriter.NewWriter(p.W, 0, 4, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		fmt.Fprintln(table, strings.Join(row, "\t")+"\t")
	}
	if err := table.Flush(); p.Err == nil {
		p.Err = err
	}
}

// Errors writes what went wrong, and how often.
func (p *Printer) Errors(all Errors) {
	for _, text := range slices.Sorted(maps.Keys(all)) {
		p.Line("error, %d times: %s", all[text], text)
	}
}

// printer writes the parts of a result.
type printer struct{ *Printer }

func (p *printer) kinds(all []KindResult) {
	rows := [][]string{{"", "asked/min", "held/min", "calls", "p50", "p90", "p99", "p99.9", "max", "failed", "unmatched", "calls not begun"}}
	for _, k := range all {
		row := append([]string{k.Kind, fmt.Sprintf("%.0f", k.Asked), fmt.Sprintf("%.0f", k.Held), fmt.Sprint(k.Calls)}, k.Row()...)
		rows = append(rows, append(row, fmt.Sprint(k.Failed), fmt.Sprint(k.Unmatched), fmt.Sprint(k.NotBegun)))
	}
	p.Table(rows)
}

func (p *printer) windows(r WindowResult) {
	rows := [][]string{{"inserts by windows of 1 s", "windows", "p99", "90 % of their p99 below", "worst p99"}}
	for _, g := range []struct {
		name string
		WindowGroup
	}{{"a partition was dropped", r.Dropped}, {"partitions were made", r.Made}, {"others", r.Others}} {
		row := []string{g.name, fmt.Sprint(g.Windows), "-", "-", "-"}
		if g.Windows > 0 {
			row = append(row[:2], Millis(g.P99), Millis(g.P90), Millis(g.Worst))
		}
		rows = append(rows, row)
	}
	p.Table(rows)
	p.Line("")
}

func (p *printer) partitions(r *PartitionResult) {
	if r == nil {
		p.Line("partitions: none: the server is no gateway, or the collection has no layout")
		return
	}
	p.Line("partitions: %d made ahead, %d hidden, %d dropped, %d attempts failed", r.Made, r.Hidden, r.Dropped, r.Failed)
	if len(r.Drops) > 0 {
		works := make([]string, len(r.Drops))
		for i, e := range r.Drops {
			works[i] = Millis(e.Micros)
		}
		p.Line("work of each drop: %s", strings.Join(works, ", "))
	}
	if r.Stopped != "" {
		p.Line("retention stopped: %s", r.Stopped)
	}
}

// Millis writes microseconds as milliseconds.
func Millis(n int64) string { return fmt.Sprintf("%.1f ms", float64(n)/1000) }

// Megabytes writes a number of bytes.
func Megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// Seconds writes a length of time.
func Seconds(n float64) string {
	return time.Duration(n * float64(time.Second)).Round(100 * time.Millisecond).String()
}
