package ways

import (
	"fmt"
	"math"
	"strings"

	"oxbow/internal/bench"
)

// strip is one figure of all runs over time.
type strip struct {
	name string
	unit func(float64) string // writes a value
	rows []series             // one a run
	top  float64              // of the scale that all runs share; the bottom is 0. 0: each run has a scale of its own
}

// series is one figure of one run: a value each sample, NaN where there is none. It is empty where the server does not report the figure.
type series []float64

// strips are the six figures that a comparison shows over time.
func strips(r *Result) []strip {
	all := []strip{
		{name: "foreground p99", unit: func(v float64) string { return bench.Millis(int64(v)) }},
		{name: "gone/s", unit: count},
		{name: "backlog", unit: count},
		{name: "disk", unit: func(v float64) string { return bench.Megabytes(int64(v)) }},
		{name: "lag", unit: func(v float64) string { return fmt.Sprintf("%.1f s", v) }},
		{name: "oplog/s", unit: func(v float64) string { return bench.Megabytes(int64(v)) }},
	}
	for i := range r.Runs {
		samples := r.Runs[i].Samples
		each := func(value func(i int) float64) series {
			s := make(series, len(samples))
			some := false
			for i := range samples {
				s[i] = value(i)
				some = some || !math.IsNaN(s[i])
			}
			if !some {
				return nil
			}
			return s
		}
		all[0].rows = append(all[0].rows, each(func(i int) float64 { return valueOf(samples[i].P99) }))
		all[1].rows = append(all[1].rows, each(func(i int) float64 {
			return slope(samples, i, func(s *Sample) float64 { return float64(s.Gone) })
		}))
		all[2].rows = append(all[2].rows, each(func(i int) float64 { return float64(samples[i].Backlog) }))
		all[3].rows = append(all[3].rows, each(func(i int) float64 { return valueOf(samples[i].Disk) }))
		all[4].rows = append(all[4].rows, each(func(i int) float64 { return valueOf(samples[i].Lag) }))
		all[5].rows = append(all[5].rows, each(func(i int) float64 {
			return slope(samples, i, func(s *Sample) float64 { return valueOf(s.Oplog) })
		}))
	}
	for i := range all {
		if i == gone {
			continue // what is dropped goes a thousand times as fast as what is deleted
		}
		for _, row := range all[i].rows {
			all[i].top = max(all[i].top, greatest(row))
		}
	}
	return all
}

// gone is the number of the strip that has no scale in common.
const gone = 1

// scale is the top of one run's scale.
func (s *strip) scale(run int) float64 {
	if s.top > 0 {
		return s.top
	}
	return greatest(s.rows[run])
}

// valueOf is a figure, NaN where it is not reported.
func valueOf[N int64 | float64](n *N) float64 {
	if n == nil {
		return math.NaN()
	}
	return float64(*n)
}

// slope is how fast a figure grew up to the i-th sample, a second; never below zero.
func slope(samples []Sample, i int, of func(*Sample) float64) float64 {
	if i == 0 {
		i = min(1, len(samples)-1)
	}
	if i == 0 {
		return math.NaN()
	}
	before, now := &samples[i-1], &samples[i]
	return max(0, (of(now)-of(before))/(now.At-before.At))
}

// count writes a number of documents.
func count(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.2f million", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.0f thousand", v/1e3)
	}
	return fmt.Sprintf("%.0f", v)
}

// stripWidth is how many characters a run is drawn with.
const stripWidth = 60

// draw writes a series as blocks: each column the greatest value of its samples, on a scale from 0 to top.
func draw(s series, top float64) string {
	const blocks = "▁▂▃▄▅▆▇█"
	levels := []rune(blocks)
	var b strings.Builder
	for _, v := range columns(s, stripWidth) {
		switch {
		case math.IsNaN(v):
			b.WriteByte(' ')
		case top <= 0:
			b.WriteRune(levels[0])
		default:
			b.WriteRune(levels[min(int(v/top*float64(len(levels))), len(levels)-1)])
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// columns puts a series into at most n columns: of each the greatest value of its samples, NaN where there is none.
func columns(s series, n int) []float64 {
	n = min(n, len(s))
	out := make([]float64, n)
	for i := range out {
		out[i] = math.NaN()
		for _, v := range s[i*len(s)/n : (i+1)*len(s)/n] {
			if math.IsNaN(out[i]) || v > out[i] {
				out[i] = v
			}
		}
	}
	return out
}

// ruler says below which columns the way ran.
func ruler(r *Run) string {
	n := min(stripWidth, len(r.Samples))
	var b strings.Builder
	for i := range n {
		at := r.Samples[(i+1)*len(r.Samples)/n-1].At
		switch {
		case at < 0:
			b.WriteString("·")
		case at <= r.Took || i > 0 && r.Samples[i*len(r.Samples)/n-1].At < 0:
			b.WriteString("━")
		default:
			b.WriteString("·")
		}
	}
	return b.String()
}

// printStrips draws all strips of all runs that were not refused.
func printStrips(p *bench.Printer, r *Result) {
	all := strips(r)
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.Refused != "" {
			continue
		}
		p.Line("")
		p.Line("%s: %s", run.Way, run.About)
		p.Line("  %-14s  %s", "━ it runs", ruler(run))
		for _, s := range all {
			if s.rows[i] == nil {
				p.Line("  %-14s  none: the server does not report it", s.name)
				continue
			}
			p.Line("  %-14s  %s  to %s", s.name, draw(s.rows[i], s.scale(i)), s.unit(greatest(s.rows[i])))
		}
	}
	p.Line("")
	p.Line("Strips of one figure share a scale from 0 to its greatest value in any run, but for gone/s; beside each stands its own greatest.")
}

func greatest(s series) float64 {
	top := 0.0
	for _, v := range s {
		if v > top {
			top = v
		}
	}
	return top
}
