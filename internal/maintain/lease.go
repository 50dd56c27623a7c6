package maintain

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"
)

// owner is a process's own name among those that run jobs, one that nobody had before, and how people call it.
type owner struct{ name, host string }

func newOwner() owner {
	var random [8]byte
	rand.Read(random[:])
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return owner{fmt.Sprintf("r%x", random), fmt.Sprintf("%s/%d", host, os.Getpid())}
}

// held is a lease that this process has: a job, a token, and nobody else's.
type held struct {
	id    string
	token int64
	owner string
}

// filter matches the job's document while the lease is held.
func (h held) filter() driver.D {
	return driver.D{{Key: "_id", Value: h.id}, {Key: "lease.token", Value: h.token}, {Key: "lease.owner", Value: h.owner}}
}

// acquire takes a lease that was free, or whose owner was watched not to renew it, and returns the job with its checkpoint; nil if somebody was faster. What
// belongs to another specification is forgotten.
func (s *Store) acquire(ctx context.Context, seen *record, spec *Spec, me owner, length time.Duration, now time.Time) (*record, error) {
	filter := append(held{seen.ID, seen.Lease.Token, seen.Lease.Owner}.filter(), driver.E{Key: "lease.beat", Value: seen.Lease.Beat})
	taken := lease{Token: seen.Lease.Token + 1, Owner: me.name, Host: me.host, Length: length.Milliseconds(), Renewed: now}
	set := driver.D{
		{Key: "lease", Value: taken}, {Key: "state", Value: Running}, {Key: "reason", Value: ""}, {Key: "next", Value: time.Time{}},
		{Key: "ended", Value: ""}, {Key: "because", Value: ""}, {Key: "notBefore", Value: time.Time{}}, {Key: "resumed", Value: seen.Orders.Resumed},
	}
	if seen.Ended == Stopped { // by its time limit, and it was resumed
		set = append(set, driver.E{Key: "spentFrom", Value: time.Time{}})
	}
	var update driver.D
	if print := spec.print(); seen.Of != print || seen.Over || seen.Pass.Begun.IsZero() {
		set = append(set, driver.E{Key: "of", Value: print}, driver.E{Key: "pass", Value: passed{Begun: now, Remaining: -1}}, driver.E{Key: "over", Value: false}, driver.E{Key: "failures", Value: 0})
		update = driver.D{{Key: "$unset", Value: driver.D{{Key: "checkpoint", Value: ""}}}}
	}
	r, err := s.modify(ctx, filter, append(update, driver.E{Key: "$set", Value: set}), true)
	if err != nil {
		return nil, fmt.Errorf("take the lease of job %s: %w", seen.ID, err)
	}
	return r, nil
}

// renew renews a lease, tells what is in set, and returns the job as it is now, with its orders; errLost if the lease is another's.
func (s *Store) renew(ctx context.Context, h held, now time.Time, set driver.D) (*record, error) {
	r, err := s.modify(ctx, h.filter(), driver.D{
		{Key: "$set", Value: append(set, driver.E{Key: "lease.renewed", Value: now})},
		{Key: "$inc", Value: driver.D{{Key: "lease.beat", Value: int64(1)}}},
	}, false)
	if err == nil && r == nil {
		err = errLost
	}
	return r, err
}

// put changes the job under a lease; errLost if that is another's.
func (s *Store) put(ctx context.Context, h held, update driver.D) error {
	n, err := s.update(ctx, jobsStored, h.filter(), update, false)
	if err == nil && n == 0 {
		err = errLost
	}
	return err
}

// note puts down why nobody runs a job, if still nobody does: its lease is free, or its owner is gone.
func (s *Store) note(ctx context.Context, seen *record, state State, reason string, next time.Time) error {
	return s.put(ctx, held{seen.ID, seen.Lease.Token, seen.Lease.Owner}, driver.D{{Key: "$set", Value: driver.D{
		{Key: "state", Value: state}, {Key: "reason", Value: reason}, {Key: "next", Value: next},
	}}})
}

// reopen lets a job begin that has ended, or waits for its next pass, if nobody runs it.
func (s *Store) reopen(ctx context.Context, seen *record) error {
	return s.put(ctx, held{seen.ID, seen.Lease.Token, ""}, driver.D{{Key: "$set", Value: driver.D{{Key: "ended", Value: ""}, {Key: "notBefore", Value: time.Time{}}}}})
}

// watch tells leases that are renewed from those whose owner is gone, by this process's clock alone.
type watch struct {
	lease lease
	since time.Duration // monotonic: unchanged at least since then
}

// look takes note of a lease at a moment and reports whether its owner is gone: the lease did not change for longer than its length while it was watched. A part
// is added, since clocks don't run alike.
func (w *watch) look(l lease, now time.Duration) (gone bool) {
	if l.Token != w.lease.Token || l.Beat != w.lease.Beat || l.Owner != w.lease.Owner {
		w.lease, w.since = l, now
		return false
	}
	length := time.Duration(l.Length) * time.Millisecond
	return now-w.since > length+length/8
}
