package engine

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"oxbow/internal/bson"
)

// uniqueSearch looks for entries with given fields; its iterator is opened on first use, which is after the latches are held.
type uniqueSearch struct {
	db *DB
	it *pebble.Iterator
}

// exists reports whether there is an entry with these fields.
func (u *uniqueSearch) exists(fields []byte) (bool, error) {
	if u.it == nil {
		it, err := u.db.pebble.NewIter(&pebble.IterOptions{UseL6Filters: true})
		if err != nil {
			return false, fmt.Errorf("look for unique key: %w", err)
		}
		u.it = it
	}
	found := u.it.SeekPrefixGE(fields)
	return found, u.it.Error()
}

func (u *uniqueSearch) close() {
	if u.it != nil {
		_ = u.it.Close() // its errors have been returned by exists
	}
}

// checkUniques refuses a document one of whose new unique keys is another one's. It reports false when there are new ones but the document is not
// alone in its group.
func (g *group) checkUniques(doc bson.Document) (ok bool, err error) {
	for i, ix := range g.v.indexes {
		if !ix.enforced() {
			continue
		}
		for _, fields := range added(&g.w.old[i], &g.w.new[i]) {
			g.uniques = append(g.uniques, keyLatch(fields))
		}
	}
	if len(g.uniques) == 0 {
		return true, nil
	}
	if !g.alone {
		g.uniques = g.uniques[:0]
		return false, nil
	}
	if g.uniques, err = g.w.db.latches.acquire(g.w.ctx, g.uniques); err != nil {
		return false, err
	}
	u := uniqueSearch{db: g.w.db}
	defer u.close()
	for i, ix := range g.v.indexes {
		if !ix.enforced() {
			continue
		}
		for _, fields := range added(&g.w.old[i], &g.w.new[i]) {
			taken, err := u.exists(fields)
			if err != nil {
				return false, err
			}
			if taken {
				return false, g.t.duplicate(ix, fields, doc)
			}
		}
	}
	return true, nil
}
