package partition

import (
	"fmt"
	"strings"
	"time"

	"oxbow/internal/maintain"
	"oxbow/internal/route"
)

// JobPrefix stands before a collection's name in the name of its retention among the jobs.
const JobPrefix = "retention:"

// alertAfter is how long data may be there beyond its time: more than what drops wait for that come together.
const alertAfter = 10 * time.Minute

// account takes note of how a collection stands after it was looked at, and tells when its oldest data is there for too long, and when it no longer is.
func (p *pass) account(ns string, now int64, failed error) {
	col := p.opts.Catalog.Snapshot().Collection(ns)
	if col == nil {
		return
	}
	overdue := Overdue(col.All, col.Table.Layout.Time, col.Hold, now)
	p.mu.Lock()
	s := p.stateOf(ns)
	before := s.overdue
	s.overdue, s.next, s.failed = overdue, time.Time{}, ""
	s.looked, _ = p.opts.Clock()
	if failed != nil {
		s.failed = failed.Error()
	}
	p.mu.Unlock()
	switch {
	case overdue > alertAfter && before <= alertAfter:
		p.opts.Log.Warn("data is kept for longer than it should be", "collection", ns, "beyond", overdue.Round(time.Second))
	case overdue <= alertAfter && before > alertAfter:
		p.opts.Log.Info("data is no longer kept for too long", "collection", ns)
	}
}

// Overdue returns how long the oldest data of a collection has been there beyond keep, or beyond hold where it is hidden; 0 where none has. What was brought back
// by hand stays.
func Overdue(all []route.Partition, t *route.Time, hold time.Duration, now int64) time.Duration {
	if t == nil || t.Keep <= 0 {
		return 0
	}
	oldest := int64(0)
	for _, p := range all {
		due := p.End + t.Keep.Milliseconds()
		switch {
		case p.State == route.Active && !p.Restored:
		case p.State == route.Hidden:
			due = max(due, p.Since+hold.Milliseconds())
		default:
			continue
		}
		oldest = max(oldest, now-due)
	}
	return time.Duration(oldest) * time.Millisecond
}

// Statuses are the collections that retention looks after, as jobs.
func (r *Runner) Statuses() []maintain.Status {
	var list []maintain.Status
	for _, col := range r.opts.Catalog.Snapshot().Collections("") {
		if t := col.Table.Layout.Time; t == nil || t.Keep <= 0 {
			continue
		}
		list = append(list, r.status(col.Namespace()))
	}
	return list
}

func (r *Runner) status(ns string) maintain.Status {
	entries := r.Entries(ns)
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stateOf(ns)
	status := maintain.Status{
		ID: JobPrefix + ns, Kind: "retention", Namespace: ns, State: maintain.Waiting, Next: s.next, Remaining: -1, Share: 1, Priority: 1,
	}
	switch {
	case s.stopped != "":
		status.State, status.Reason, status.Next = maintain.Held, s.stopped, time.Time{}
	case s.failed != "":
		status.Reason, status.Failures = "it is tried again: "+s.failed, 1
	case s.left > 0:
		status.State, status.Reason = maintain.Running, fmt.Sprintf("%d drops wait: %s", s.left, s.waits)
	}
	if s.overdue > alertAfter {
		status.Alert = fmt.Sprintf("the oldest data should have gone %s ago", s.overdue.Round(time.Minute))
	}
	if len(entries) > 0 {
		status.Last = &entries[len(entries)-1]
	}
	return status
}

// Entries is what was done to a collection's partitions, as the history of a job.
func (r *Runner) Entries(ns string) []maintain.Entry {
	var list []maintain.Entry
	for _, e := range r.History() {
		if e.Collection != ns {
			continue
		}
		entry := maintain.Entry{
			Job: JobPrefix + ns, N: int64(len(list) + 1), Begin: e.At.Add(-e.Took), End: e.At, State: maintain.Waiting, Steps: 1,
			Reason: strings.TrimSuffix(string(e.Action)+" "+e.Partition, " ") + ": " + e.Reason,
		}
		switch {
		case e.Err != nil:
			entry.Reason += ": failed: " + e.Err.Error()
		case e.Action == Stopped:
			entry.State, entry.Reason = maintain.Held, e.Reason
		}
		list = append(list, entry)
	}
	return list
}
