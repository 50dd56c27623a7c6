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

// pause lets the snapshot go. What has come up by then is remembered where a later change could make it come up again: an index
// gives a document a new place when its key changes; the order of _id never does.
func (x *execution) pause() error {
	if x.seen == nil && len(x.plan.scans) == 1 && x.plan.scans[0].index != nil {
		seen, err := x.passed()
		if err != nil {
			return err
		}
		x.seen = seen
	}
	for _, sc := range x.scanners {
		if err := sc.pause(); err != nil {
			return fmt.Errorf("pause scan: %w", err)
		}
	}
	return x.close()
}

// passed collects the _ids of all keys up to the scanner's place.
func (x *execution) passed() (*idSet, error) {
	sc := x.scanners[0]
	seen := &idSet{}
	if !sc.placed && sc.last == nil {
		return seen, nil
	}
	again, err := newScanner(sc.scan, x.snapshot, true)
	if err != nil {
		return nil, err
	}
	end := bytes.Clone(sc.last)
	if sc.placed && sc.iter.Valid() {
		end = bytes.Clone(sc.iter.Key())
	}
	for {
		_, ok, err := again.next()
		if err == errYield {
			continue
		}
		if !ok || err != nil {
			return seen, errors.Join(err, again.close())
		}
		seen.add(again.id())
		if seen.full() {
			return nil, errors.Join(again.close(), mongoerr.New(mongoerr.QueryPlanKilled,
				"the snapshot of an idle cursor was let go, and it had given too many documents to go on from a newer one"))
		}
		if bytes.Equal(again.iter.Key(), end) {
			return seen, again.close()
		}
	}
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
		x.seen = &idSet{}
	}
	if !x.plan.scansIndex() {
		return nil
	}
	x.fetch, err = newFetcher(appendDocumentPrefix(nil, x.table.id), x.snapshot, x.uncached)
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
	return sc.open(x.snapshot, x.uncached)
}
