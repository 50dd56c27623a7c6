package ways

import (
	"fmt"
	"io"
	"strings"
	"time"

	"oxbow/internal/bench"
)

// none stands for a figure that the server does not report.
const none = "none"

// Print writes a comparison as a table and strips, for people.
func (r *Result) Print(w io.Writer) error {
	p := &bench.Printer{W: w}
	for _, text := range r.head() {
		p.Line("%s", text)
	}
	p.Line("")
	p.Table(append([][]string{columnNames}, r.rows()...))
	p.Line("")
	for _, text := range r.notes() {
		p.Line("%s", text)
	}
	printStrips(p, r)
	return p.Err
}

// head says what was compared.
func (r *Result) head() []string {
	return []string{
		fmt.Sprintf("Ways to let %s of %s documents of %d bytes go, on a server that answers as MongoDB %s, from %s",
			thousands(r.Old), thousands(r.Documents), r.Size, r.Server, r.Started.UTC().Format(time.RFC3339)),
		fmt.Sprintf("foreground: %d inserts and %d updates asked a second; latencies are of its calls, from when each was meant to begin", r.Inserts, r.Updates),
	}
}

// columnNames are those of the table.
var columnNames = []string{
	"", "gone", "took", "documents/s", "p50 idle", "p50", "p99 idle", "p99", "of idle", "foreground held", "disk before", "disk after", "oplog", "worst lag",
	"backlog/s", "kept up", "counts",
}

// rows are a line of the table for each run.
func (r *Result) rows() [][]string {
	var all [][]string
	for i := range r.Runs {
		all = append(all, r.Runs[i].row())
	}
	return all
}

func (r *Run) row() []string {
	if r.Refused != "" {
		row := []string{r.Way, "not run"}
		for len(row) < len(columnNames) {
			row = append(row, "-")
		}
		return row
	}
	took := bench.Seconds(r.Took)
	if r.Took < 1 {
		took = fmt.Sprintf("%.0f ms", r.Took*1000)
	}
	if !r.Finished() {
		took += "+"
	}
	return []string{
		r.Way, fmt.Sprintf("%.0f %%", 100*float64(r.Gone)/float64(max(r.Old, 1))), took, thousands(int64(r.Rate())),
		bench.Millis(r.Idle.P50), bench.Millis(r.During.P50), bench.Millis(r.Idle.P99), bench.Millis(r.During.P99), fmt.Sprintf("%.2f", r.Ratio()),
		fmt.Sprintf("%.0f %%", 100*r.During.Held), bytesOr(r.DiskBefore), bytesOr(r.DiskAfter), bytesOr(r.Oplog), secondsOr(r.Lag),
		fmt.Sprintf("%+.0f", r.Slope()), yesNo(r.KeptUp()), yesNo(r.Fit.Why == "" && r.Failure == ""),
	}
}

// notes say of each run what the table can't.
func (r *Result) notes() []string {
	var all []string
	for i := range r.Runs {
		run := &r.Runs[i]
		note := func(format string, args ...any) { all = append(all, run.Way+": "+fmt.Sprintf(format, args...)) }
		if run.Refused != "" {
			note("not run: %s", run.Refused)
			continue
		}
		if run.Stopped != "" {
			note("stopped before its end: %s", run.Stopped)
		}
		if run.Failure != "" {
			note("FAILED, and what is left was not counted: %s", firstLine(run.Failure))
		}
		if run.Fit.Why != "" {
			note("does not count: %s", run.Fit.Why)
		}
		if text := run.Wrong(); text != "" {
			note("WRONG: %s", text)
		}
		if run.Idle.Held < 0.98 {
			note("the foreground was not held even without it: %.0f %%", 100*run.Idle.Held)
		}
		if run.Failed > 0 {
			note("%d documents of the foreground failed", run.Failed)
		}
	}
	return all
}

// firstLine is as much of a text as a note has room for.
func firstLine(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	const most = 200
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

func bytesOr(n *int64) string {
	if n == nil {
		return none
	}
	return bench.Megabytes(*n)
}

func secondsOr(n *float64) string {
	if n == nil {
		return none
	}
	return fmt.Sprintf("%.1f s", *n)
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// thousands writes a number with its thousands apart.
func thousands(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
