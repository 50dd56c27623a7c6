package engine

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"oxbow/internal/mongoerr"
)

// old reports whether the execution holds a snapshot older than age.
func (x *execution) old(age time.Duration) bool {
	return x.snapshot != nil && time.Since(x.opened) > age
}

// passStep is how many keys pause looks at in one go.
const passStep = 4096

// passing is the way to letting go a snapshot under an index: a second walk over the keys that the first has passed.
type passing struct {
	scanner *scanner
	end     []byte // the last key
	seen    *idSet
}

// pause lets the snapshot go, and reports whether it has. Where it has not, it is called again, or abandon is before the execution is used. What
// has come up by then is remembered where a later change could make it come up again: an index gives a document a new place when
// its key changes; the order of _id never does.
func (x *execution) pause() (done bool, err error) {
	if x.seen == nil && len(x.plan.scans) == 1 && x.plan.scans[0].index != nil {
		if done, err := x.pass(); !done || err != nil {
			return false, err
		}
	}
	for _, sc := range x.scanners {
		if err := sc.pause(); err != nil {
			return false, fmt.Errorf("pause scan: %w", err)
		}
	}
	return true, x.letGo()
}

// pass collects the _ids of keys up to the scanner's place, a step of them, and reports whether those were the last.
func (x *execution) pass() (done bool, err error) {
	if x.passing == nil {
		sc := x.scanners[0]
		p := &passing{seen: x.newIDSet(), end: bytes.Clone(sc.last)}
		if sc.placed && sc.iter.Valid() {
			p.end = bytes.Clone(sc.iter.Key())
		}
		if p.end == nil {
			x.seen = p.seen // nothing has come up yet
			return true, nil
		}
		if p.scanner, err = newScanner(sc.scan, x.snapshot); err != nil {
			return false, err
		}
		x.passing = p
	}
	done, err = x.passing.step()
	if done && err == nil {
		x.seen, x.passing.seen = x.passing.seen, nil
	}
	if done || err != nil {
		err = errors.Join(err, x.abandon())
	}
	return done, err
}

func (p *passing) step() (done bool, err error) {
	for looked := 0; looked < passStep; {
		n, ok, err := p.scanner.next()
		looked += n
		if err == errYield {
			continue
		}
		if !ok || err != nil {
			return true, err
		}
		if _, err := p.seen.add(p.scanner.id()); err != nil {
			return false, err
		}
		if p.seen.full() {
			return false, mongoerr.New(mongoerr.QueryPlanKilled,
				"the snapshot of an idle cursor was let go, and it had given too many documents to go on from a newer one")
		}
		if bytes.Equal(p.scanner.iter.Key(), p.end) {
			return true, nil
		}
	}
	return false, nil
}

// abandon ends what pause began.
func (x *execution) abandon() error {
	if x.passing == nil {
		return nil
	}
	err := x.passing.scanner.close()
	x.passing.seen.close()
	x.passing = nil
	return err
}

// resume goes on from the last keys on a new snapshot. Keys no longer decide the filter, since arrays may have come under an index's paths.
func (x *execution) resume() error {
	snapshot, v, err := x.table.snapshot()
	if err != nil {
		return err
	}
	x.snapshot, x.opened = snapshot, time.Now()
	x.plan.filter = x.filter
	for _, sc := range x.scanners {
		if err := x.reopen(sc, v); err != nil {
			return errors.Join(err, x.close())
		}
	}
	if x.seen == nil && x.plan.scansIndex() {
		x.seen = x.newIDSet()
	}
	if !x.plan.scansIndex() {
		return nil
	}
	x.fetch, err = newFetcher(appendDocumentPrefix(nil, x.table.id), x.snapshot)
	if err != nil {
		return errors.Join(err, x.close())
	}
	return nil
}

func (p *plan) scansIndex() bool {
	for i := range p.scans {
		if p.scans[i].index != nil {
			return true
		}
	}
	return false
}

// reopen gives a paused scanner an iterator of the new snapshot, if its index is still there.
func (x *execution) reopen(sc *scanner, v *version) error {
	if ix := sc.scan.index; ix != nil {
		found := false
		for _, has := range v.ready() {
			found = found || has.number == ix.number
		}
		if !found || ix.flags.dropped.Load() {
			return mongoerr.New(mongoerr.QueryPlanKilled, "index '%s' dropped", sc.scan.name)
		}
	}
	return sc.open(x.snapshot)
}
