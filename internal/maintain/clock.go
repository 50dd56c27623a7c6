package maintain

import (
	"context"
	"fmt"
	"sync"
	"time"

	"oxbow/internal/retention"
)

// tolerance is how far two clocks may be apart: more than corrections by NTP come to, less than matters to a window.
const tolerance = time.Minute

// trust is how far the wall clock of this machine is trusted with one job.
type trust struct {
	since   *retention.Reading // later readings are compared with it; nil: the next one
	stop    string             // why it is not trusted, or ""
	resumed int64              // the orders to resume that there were then
}

// check compares a reading with the first. An order to resume that comes after a stop says that the clock is right as it is.
func (t *trust) check(wall time.Time, monotonic time.Duration, resumed int64) (stop string) {
	reading := retention.Reading{Wall: wall.UnixMilli(), Monotonic: monotonic}
	if t.since == nil || t.stop != "" && resumed != t.resumed {
		t.since = &reading
	}
	_, stop = retention.Now(*t.since, reading)
	switch {
	case stop == "":
		t.stop = ""
	case t.stop == "":
		t.stop, t.resumed = stop, resumed
	}
	return t.stop // reasons that differ in figures only are one
}

// trusts are how far the wall clock is trusted with each job. Safe for concurrent use.
type trusts struct {
	clock func() (wall time.Time, monotonic time.Duration)

	mu sync.Mutex
	by map[string]*trust
}

func newTrusts(clock func() (time.Time, time.Duration)) *trusts {
	return &trusts{clock: clock, by: map[string]*trust{}}
}

// distrust compares the clocks for a job.
func (t *trusts) distrust(id string, resumed int64) (stop string) {
	wall, monotonic := t.clock()
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.by[id]
	if one == nil {
		one = &trust{}
		t.by[id] = one
	}
	return one.check(wall, monotonic, resumed)
}

// compare says why the wall clock can't be trusted at the begin of some work, or "": it is behind the last time at which the job was worked on, or the
// deployment has another time.
func (r *Runner) compare(ctx context.Context, spec *Spec, rec *record) (stop string) {
	wall, _ := r.opts.Clock()
	if last := rec.Lease.Renewed; rec.Orders.Resumed == rec.Resumed && wall.Before(last.Add(-tolerance)) {
		return fmt.Sprintf("the clock of %s is behind %s, when the job was last worked on: resume it if the clock is right now", r.me.host, instant(last))
	}
	if r.opts.BackendTime == nil {
		return ""
	}
	limited, cancel := context.WithTimeout(ctx, r.opts.Lease)
	defer cancel()
	at, err := r.opts.BackendTime(limited, *spec)
	if err != nil {
		return fmt.Sprintf("the time of the deployment is not known: %v", err)
	}
	if apart := Apart(wall, at); apart != "" {
		return fmt.Sprintf("the clock of %s is %s the deployment's", r.me.host, apart)
	}
	return ""
}

// Apart says how far a clock is from another one, "" where that is no more than NTP's corrections come to.
func Apart(clock, other time.Time) string {
	apart := clock.Sub(other)
	if apart.Abs() <= tolerance {
		return ""
	}
	return apart.Round(time.Minute).String() + " away from"
}

// instant writes an instant for people.
func instant(t time.Time) string { return t.Format(time.RFC3339) }
