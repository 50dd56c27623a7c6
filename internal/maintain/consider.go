package maintain

import (
	"context"
	"fmt"
	"time"
)

// verdict is whether a job is due, and else why not.
type verdict struct {
	due    bool
	state  State
	reason string
	next   time.Time // when it will be, zero: not known
}

// consider decides whether a job is due, and puts down why not where that is new.
func (r *Runner) consider(ctx context.Context, spec *Spec, rec *record) verdict {
	if rec.Lease.Owner != "" && !r.gone(rec) {
		return verdict{state: rec.State, reason: "it is run by " + rec.Lease.Host}
	}
	v := r.decide(spec, rec)
	if v.due {
		if stop := r.compare(ctx, spec, rec); stop != "" {
			v = verdict{state: Held, reason: stop}
		}
	}
	if !v.due && (v.state != rec.State || v.reason != rec.Reason || !v.next.Equal(rec.Next.Round(0))) {
		limited, cancel := context.WithTimeout(ctx, r.opts.Lease)
		defer cancel()
		// Another's words come again with the next round, and so does an error.
		_ = r.opts.Store.note(limited, rec, v.state, v.reason, v.next)
	}
	return v
}

// decide decides by what is stored, the clock and the stop file.
func (r *Runner) decide(spec *Spec, rec *record) verdict {
	wall, _ := r.opts.Clock()
	fresh := rec.Of != spec.print() // nothing was done of it yet
	obeyed := rec.Resumed == rec.Orders.Resumed
	switch {
	case !fresh && rec.Ended == Done:
		return verdict{state: Done, reason: rec.Because}
	case rec.Orders.Stopped:
		return verdict{state: Stopped, reason: "stopped by an order"}
	case rec.Orders.Paused:
		return verdict{state: Paused, reason: "paused by an order"}
	case !fresh && rec.Ended != "" && obeyed:
		return verdict{state: rec.Ended, reason: rec.Because}
	}
	if stop := r.trusts.distrust(spec.ID, rec.Orders.Resumed); stop != "" {
		return verdict{state: Held, reason: stop}
	}
	if stop := spec.stopFileOn(r.me.host); stop != "" {
		return verdict{state: Held, reason: stop}
	}
	return r.inTime(spec, rec, wall, fresh)
}

// inTime decides by the windows and by when the next pass, or the rest of this one, is to begin.
func (r *Runner) inTime(spec *Spec, rec *record, wall time.Time, fresh bool) verdict {
	hurried := rec.Failures > 0 && rec.Resumed != rec.Orders.Resumed
	if !fresh && !hurried && wall.Before(rec.NotBefore) {
		return verdict{state: Waiting, reason: rec.Because, next: rec.NotBefore}
	}
	if !spec.Windows.In(wall) {
		next, _ := spec.Windows.Next(wall)
		return verdict{state: Waiting, reason: opens(next), next: next}
	}
	return verdict{due: true}
}

// opens says that a job waits for its window.
func opens(next time.Time) string {
	if next.IsZero() {
		return "it waits for its window"
	}
	return fmt.Sprintf("it waits for its window, which opens at %s", instant(next))
}
