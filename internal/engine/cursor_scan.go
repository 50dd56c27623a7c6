package engine

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"oxbow/internal/bson"
)

// maxNexts is how many keys out of bounds a scan steps over before it seeks.
const maxNexts = 8

// scanner steps through the keys of a scan, one range after another.
type scanner struct {
	scan    *scan
	iter    *pebble.Iterator
	current int  // the range at hand, counted in the direction of the scan
	placed  bool // the iterator stands at a key of that range
	many    bool // several ranges share the iterator, so that each key is compared with its range's end
	pending bool // the key that the iterator stands at has not been looked at yet
	misses  int  // keys stepped over since the last seek
	last    []byte
	again   bool // last itself has not been looked at yet
}

func newScanner(s *scan, snapshot *pebble.Snapshot) (*scanner, error) {
	sc := &scanner{scan: s, many: len(s.ranges) > 1}
	return sc, sc.open(snapshot)
}

// open gives the scanner an iterator of a snapshot; it goes on behind its last key.
func (sc *scanner) open(snapshot *pebble.Snapshot) error {
	iter, err := snapshot.NewIter(&pebble.IterOptions{LowerBound: sc.scan.ranges[0].lo, UpperBound: sc.scan.ranges[len(sc.scan.ranges)-1].hi})
	if err != nil {
		return fmt.Errorf("open iterator: %w", err)
	}
	sc.iter, sc.placed, sc.pending = iter, false, false
	return nil
}

// pause remembers the last key given and lets the iterator go.
func (sc *scanner) pause() error {
	if sc.iter == nil {
		return nil
	}
	if (sc.placed || sc.pending) && sc.iter.Valid() {
		sc.last, sc.again = append(sc.last[:0], sc.iter.Key()...), sc.pending
	}
	return sc.close()
}

func (sc *scanner) close() error {
	if sc.iter == nil {
		return nil
	}
	err := sc.iter.Close()
	sc.iter = nil
	return err
}

// next moves to the next key within the scan's bounds and returns how many keys it looked at; with ok false there is none.
func (sc *scanner) next() (looked int, ok bool, err error) {
	valid := sc.step()
	for {
		if !valid {
			if err := sc.iter.Error(); err != nil {
				return looked, false, fmt.Errorf("scan %s: %w", sc.scan.name, err)
			}
			if sc.current++; sc.current >= len(sc.scan.ranges) {
				sc.current = len(sc.scan.ranges)
				return looked, false, nil
			}
			valid = sc.enter()
			continue
		}
		if sc.many && !sc.inRange() {
			valid = false
			continue
		}
		looked++
		if len(sc.scan.checks) == 0 {
			sc.placed = true
			return looked, true, nil
		}
		admitted, from, above := sc.scan.admits(sc.iter.Key()[sc.scan.skip:])
		if admitted {
			sc.placed, sc.misses = true, 0
			return looked, true, nil
		}
		valid = sc.pass(from, above)
		if valid && looked >= interruptKeys {
			sc.pending = true
			return looked, false, errYield
		}
	}
}

// errYield says that a scan has looked at many keys in vain and may be asked to go on.
var errYield = errors.New("scan yields")

// step moves on from where the scanner stands.
func (sc *scanner) step() bool {
	switch {
	case sc.current >= len(sc.scan.ranges):
		return false
	case sc.pending:
		sc.pending = false
		return sc.iter.Valid()
	case sc.placed && sc.scan.backward:
		return sc.iter.Prev()
	case sc.placed:
		return sc.iter.Next()
	case sc.last != nil:
		return sc.resume()
	}
	return sc.enter()
}

// resume seeks the key behind the last one given.
func (sc *scanner) resume() bool {
	at := sc.last
	if sc.scan.backward == sc.again {
		at = append(slices.Clone(at), 0)
	}
	if sc.scan.backward {
		return sc.iter.SeekLT(at)
	}
	return sc.iter.SeekGE(at)
}

// rangeAt returns the range at hand.
func (sc *scanner) rangeAt() *span {
	if sc.scan.backward {
		return &sc.scan.ranges[len(sc.scan.ranges)-1-sc.current]
	}
	return &sc.scan.ranges[sc.current]
}

// enter seeks the first key of the range at hand.
func (sc *scanner) enter() bool {
	r := sc.rangeAt()
	if !sc.scan.backward {
		return sc.iter.SeekGE(r.lo)
	}
	if r.hi == nil {
		return sc.iter.Last()
	}
	return sc.iter.SeekLT(r.hi)
}

func (sc *scanner) inRange() bool {
	r := sc.rangeAt()
	if sc.scan.backward {
		return bytes.Compare(sc.iter.Key(), r.lo) >= 0
	}
	return r.hi == nil || bytes.Compare(sc.iter.Key(), r.hi) < 0
}

// pass leaves a key that the checks don't admit: by steps at first, then by a seek to where the next one can be.
func (sc *scanner) pass(from []byte, above int) bool {
	if sc.misses++; sc.misses <= maxNexts || sc.scan.backward {
		if sc.scan.backward {
			return sc.iter.Prev()
		}
		return sc.iter.Next()
	}
	sc.misses = 0
	key := sc.iter.Key()
	if above >= len(key)-sc.scan.skip {
		return sc.iter.Next()
	}
	target := slices.Clone(key[:sc.scan.skip+above])
	if from != nil {
		target = append(target, from...)
	} else if target = prefixEnd(target); target == nil {
		return false
	}
	return sc.iter.SeekGE(target)
}

// id returns the key of the _id in the current key.
func (sc *scanner) id() []byte {
	key := sc.iter.Key()
	at := sc.scan.skip
	if sc.scan.index != nil {
		for i := range sc.scan.keys {
			at += bson.KeyLen(key[at:], sc.scan.keys[i].Desc)
		}
	}
	return key[at:]
}
