package engine

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"oxbow/internal/bson"
)

// expireRecords is about how many records on disk one step of expire looks at: so many sessions at most are in memory for it.
const expireRecords = 256

// expireLoop forgets sessions that have not been used for a while.
func (db *DB) expireLoop() {
	ticker := time.NewTicker(db.options.RetryAge / 4)
	defer ticker.Stop()
	for {
		select {
		case <-db.stop:
			return
		case now := <-ticker.C:
			if err := db.expire(now.Add(-db.options.RetryAge)); err != nil {
				db.options.Log.Error("engine: forget retry records", "dir", db.options.Dir, "error", err)
			}
		}
	}
}

// expire forgets sessions, in memory and on disk, that were last used before a time. Those that only the disk knows, as all after a start, are read
// a step at a time and only to be removed.
func (db *DB) expire(before time.Time) error {
	if err := db.expireThese(db.retries.keys(), before); err != nil {
		return err
	}
	for from := []byte{kindRetry}; from != nil && !db.stopping(); {
		old, next, err := db.oldSessions(from, before)
		if err != nil {
			return err
		}
		if err := db.expireThese(old, before); err != nil {
			return err
		}
		from = next
	}
	return nil
}

// stopping reports whether the store is being closed.
func (db *DB) stopping() bool {
	select {
	case <-db.stop:
		return true
	default:
		return false
	}
}

// keys lists the sessions in memory.
func (r *retries) keys() []sessionKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := make([]sessionKey, 0, len(r.sessions))
	for k := range r.sessions {
		keys = append(keys, k)
	}
	return keys
}

// oldSessions reads the records on disk from a key on, those of one step, and returns the sessions all of whose records are from before
// a time, and the key to go on from, or nil at the end.
func (db *DB) oldSessions(from []byte, before time.Time) (old []sessionKey, next []byte, err error) {
	it, err := db.pebble.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: appendPrefixEnd(nil, []byte{kindRetry})})
	if err != nil {
		return nil, nil, fmt.Errorf("read retry records: %w", err)
	}
	defer func() {
		if closing := errors.Join(it.Error(), it.Close()); closing != nil {
			err = errors.Join(err, fmt.Errorf("read retry records: %w", closing))
		}
	}()
	var at sessionKey
	fresh := true // the session at hand stays
	records := 0
	for it.First(); it.Valid(); it.Next() {
		if key := it.Key()[1:retryPrefixLen]; records == 0 || !bytes.Equal(key, at[:]) {
			if !fresh {
				old = append(old, at)
			}
			if records >= expireRecords {
				return old, slices.Clone(it.Key()), nil
			}
			copy(at[:], key)
			fresh = false
		}
		records++
		v, _ := bson.Get(it.Value(), "at")
		used, ok := v.DateTimeOK()
		fresh = fresh || !ok || !time.UnixMilli(used).Before(before)
	}
	if !fresh {
		old = append(old, at)
	}
	return old, nil, nil
}

// expireThese removes the sessions that are old enough. One that a call has checked out is not.
func (db *DB) expireThese(keys []sessionKey, before time.Time) error {
	for _, key := range keys {
		s := db.retries.session(key)
		select {
		case s.owner <- struct{}{}:
		default:
			continue
		}
		err := s.expire(db, before)
		s.checkIn()
		if err != nil {
			return err
		}
	}
	return nil
}

// expire removes a session that its caller owns, if it is old enough.
func (s *session) expire(db *DB, before time.Time) error {
	if s.gone {
		return nil
	}
	if !s.loaded {
		if err := s.load(db); err != nil {
			return err
		}
	}
	if !s.used.Before(before) || !s.latest.Before(before) {
		return nil
	}
	b := db.pebble.NewBatch()
	defer b.Close()
	for n := range max(s.slots, s.stale) {
		if err := b.Delete(appendRetryKey(nil, s.key, n), nil); err != nil {
			return fmt.Errorf("delete retry record: %w", err)
		}
	}
	if !b.Empty() {
		if err := db.commit(b); err != nil {
			return err
		}
	}
	s.gone = true
	db.retries.mu.Lock()
	delete(db.retries.sessions, s.key)
	db.retries.mu.Unlock()
	return nil
}
