package ways

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// The size of one strip on the page, in pixels.
const (
	chartWidth  = 280
	chartHeight = 72
)

// chart is one strip of one run.
type chart struct {
	None          bool
	Line, Area    string // points of SVG
	From, To      string // where the way ran, as x of a rectangle and its width
	Top           string // its greatest value
	Width, Height int
}

// stripRow is one figure of all runs.
type stripRow struct {
	Name, Top string
	Charts    []chart
}

// Page writes a comparison as a page that needs no other file.
func (r *Result) Page(w io.Writer) error {
	shown := &Result{}
	for _, run := range r.Runs {
		if run.Refused == "" {
			shown.Runs = append(shown.Runs, run)
		}
	}
	var rows []stripRow
	for _, s := range strips(shown) {
		row := stripRow{Name: s.name}
		if s.top > 0 {
			row.Top = s.unit(s.top)
		}
		for i := range shown.Runs {
			row.Charts = append(row.Charts, drawChart(&shown.Runs[i], &s, i))
		}
		rows = append(rows, row)
	}
	return page.Execute(w, map[string]any{
		"Head": r.head(), "Columns": columnNames, "Rows": r.rows(), "Notes": r.notes(), "Runs": shown.Runs, "Strips": rows,
	})
}

// drawChart draws a series over the run's time.
func drawChart(r *Run, of *strip, run int) chart {
	s, top := of.rows[run], max(of.scale(run), 1e-9)
	c := chart{None: s == nil, Width: chartWidth, Height: chartHeight, Top: of.unit(greatest(s))}
	if len(r.Samples) < 2 || c.None {
		c.None = true
		return c
	}
	first, last := r.Samples[0].At, r.Samples[len(r.Samples)-1].At
	x := func(at float64) float64 { return (min(max(at, first), last) - first) / (last - first) * chartWidth }
	c.From, c.To = fmt.Sprintf("%.1f", x(0)), fmt.Sprintf("%.1f", max(x(r.Took)-x(0), 1))
	var points strings.Builder
	start, end := math.NaN(), 0.0
	for i, v := range s {
		if math.IsNaN(v) {
			continue
		}
		end = x(r.Samples[i].At)
		if math.IsNaN(start) {
			start = end
		}
		fmt.Fprintf(&points, "%.1f,%.1f ", end, chartHeight-v/top*(chartHeight-4)-1)
	}
	c.Line = strings.TrimSpace(points.String())
	c.Area = fmt.Sprintf("%.1f,%d %s %.1f,%d", start, chartHeight, c.Line, end, chartHeight)
	return c
}
