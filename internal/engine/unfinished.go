package engine

import "sync"

// unfinished are the tables with indexes that could be neither built nor taken out, as on a full disk. Writers go on maintaining such an index, and a
// unique one goes on refusing duplicates, so it must not stay for as long as the process runs.
type unfinished struct {
	mu     sync.Mutex
	tables map[*Table]bool
}

func (u *unfinished) init() { u.tables = make(map[*Table]bool) }

func (u *unfinished) add(t *Table) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tables[t] = true
}

// take empties the list and returns what was on it.
func (u *unfinished) take() (out []*Table) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for t := range u.tables {
		out = append(out, t)
	}
	clear(u.tables)
	return out
}

// discardUnfinished takes out the indexes that nobody is at work on and that are not ready. Under t.building.
func (t *Table) discardUnfinished() error {
	var left []*index
	for _, ix := range t.version.Load().indexes {
		if ix.state != indexReady {
			left = append(left, ix)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return t.discard(left)
}

// finishIndexes undoes builds and finishes drops that the last process did not get through; nobody else uses the store yet.
func (db *DB) finishIndexes() error {
	for _, t := range db.Tables("") {
		if err := t.discardUnfinished(); err != nil {
			return err
		}
	}
	return nil
}

// retryUnfinished does the same for what this process did not get through. A table at which somebody is at work has its turn with that.
func (db *DB) retryUnfinished() {
	for _, t := range db.unfinished.take() {
		if !t.building.TryLock() {
			db.unfinished.add(t)
			continue
		}
		err := t.discardUnfinished()
		t.building.Unlock()
		if err != nil {
			db.options.Log.Debug("engine: take out an unfinished index", "table", t.Name().String(), "error", err)
		}
	}
}
