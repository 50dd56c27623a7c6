package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

// showLines prints a line for each change of a partition and one every few seconds for the load, until it has ended.
func (d *demo) showLines(ctx context.Context, w io.Writer) {
	fmt.Fprintf(w, "serving on %s: collection demo.log, a partition a minute, kept for %s, then dropped whole\nlook on with:\n", d.uri, demoKeep)
	for _, line := range d.invitation() {
		fmt.Fprintln(w, "  "+line)
	}
	if d.length > 0 {
		fmt.Fprintf(w, "ends after %s or with ctrl-C\n\n", d.length)
	} else {
		fmt.Fprint(w, "ends with ctrl-C\n\n")
	}
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	var last demoState
	load := demoState{at: time.Now()}
	for {
		now := d.look(ctx)
		now.follow(last)
		for _, c := range changes(last, now) {
			fmt.Fprintf(w, "%s  %s\n", now.at.Format(time.TimeOnly), c)
		}
		last = now
		if now.at.Sub(load.at) >= lineEvery {
			fmt.Fprintf(w, "%s  %.0f inserts/s with p99 %s, %.0f updates/s, %d failed\n", now.at.Format(time.TimeOnly),
				rate(load, now, inserted), latency(now.p99), rate(load, now, updated), now.totals.Failed)
			if now.err != nil {
				fmt.Fprintln(w, now.err)
			}
			load = now
		}
		select {
		case <-d.bench.Done():
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
