package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// CreateIndexes builds the indexes that are not there yet, from specifications as createIndexes has them (key, name, unique,
// sparse, partialFilterExpression, hidden). Same name with other keys is
// IndexKeySpecsConflict, same keys with other options IndexOptionsConflict; a duplicate under a unique one DuplicateKey; and
// then none of them is there. Writers go on during the build. The table is created when missing. It returns once the indexes
// are on disk.
func (db *DB) CreateIndexes(ctx context.Context, name Name, specs []bson.Document) (before, after int, err error) {
	if err := db.begin(); err != nil {
		return 0, 0, err
	}
	defer db.end()
	var wanted []*indexSpec
	for _, doc := range specs {
		s, err := parseIndexSpec(doc)
		if err != nil {
			return 0, 0, err
		}
		if wanted, err = addSpec(wanted, s); err != nil {
			return 0, 0, err
		}
	}
	if len(wanted)+1 > maxTableIndexes {
		return 0, 0, tooManyIndexes(name, wanted[maxTableIndexes-1])
	}
	t, made, err := db.createTable(name, nil, wanted)
	if err != nil {
		return 0, 0, err
	}
	if made {
		return 1, 1 + len(wanted), db.sync()
	}
	t.building.Lock()
	defer t.building.Unlock()
	if err := t.discardUnfinished(); err != nil {
		return 0, 0, err
	}
	return t.createIndexes(ctx, wanted)
}

// addSpec adds a specification to those of the same command. The _id index is there already, a repeated one is taken once.
func addSpec(wanted []*indexSpec, s *indexSpec) ([]*indexSpec, error) {
	if s.isID {
		return wanted, nil
	}
	for _, o := range wanted {
		exists, err := s.against(&o.Index)
		if err != nil {
			return nil, err
		}
		if exists {
			return wanted, nil
		}
	}
	return append(wanted, s), nil
}

func tooManyIndexes(name Name, s *indexSpec) error {
	return mongoerr.New(mongoerr.CannotCreateIndex, "add index fails, too many indexes for %s key:%s", name, appendShell(nil, s.pattern))
}

// createIndexes builds those of wanted that the table does not have. Under t.building.
func (t *Table) createIndexes(ctx context.Context, wanted []*indexSpec) (before, after int, err error) {
	indexes, fresh, err := t.plan(wanted)
	before = len(indexes) - len(fresh) + 1
	if err != nil || len(fresh) == 0 {
		return before, before, err
	}
	if err := t.change(indexes, t.db.commit); err != nil {
		return before, before, err
	}
	if err := t.build(ctx, indexes, fresh); err != nil {
		return before, before, errors.Join(err, t.discard(fresh))
	}
	return before, len(indexes) + 1, nil
}

// plan returns the table's indexes with the new ones, whose state is building, and those alone.
func (t *Table) plan(wanted []*indexSpec) (indexes, fresh []*index, err error) {
	t.db.ddl.Lock()
	defer t.db.ddl.Unlock()
	v := t.version.Load()
	if v.dropped {
		return nil, nil, t.notFound()
	}
	indexes = slices.Clone(v.indexes)
	for _, s := range wanted {
		exists := false
		for _, ix := range v.indexes {
			if exists, err = s.against(&ix.Index); exists || err != nil {
				break
			}
		}
		if err != nil {
			return v.indexes, nil, err
		}
		if exists {
			continue
		}
		if len(indexes)+2 > maxTableIndexes || int(t.nextIndex)+len(fresh) > maxIndexNumber {
			return v.indexes, nil, tooManyIndexes(t.Name(), s)
		}
		ix, err := t.newIndex(indexRecord{number: t.nextIndex + uint16(len(fresh)), state: indexBuilding, spec: s.Spec})
		if err != nil {
			return v.indexes, nil, err
		}
		indexes, fresh = append(indexes, ix), append(fresh, ix)
	}
	t.nextIndex += uint16(len(fresh))
	return indexes, fresh, nil
}

// change stores, by commit, and publishes another list of indexes. When it returns no writer works by the old one.
func (t *Table) change(indexes []*index, commit func(*pebble.Batch) error) error {
	t.db.ddl.Lock()
	defer t.db.ddl.Unlock()
	if t.version.Load().dropped {
		return t.killed()
	}
	b := t.db.pebble.NewBatch()
	defer b.Close()
	if err := t.record(indexes).put(b); err != nil {
		return fmt.Errorf("change indexes of %s: %w", t.Name(), err)
	}
	if err := commit(b); err != nil {
		return err
	}
	if err := t.db.sync(); err != nil {
		return err
	}
	t.publish(newVersion(indexes))
	return nil
}

// build fills fresh, which writers maintain already, and makes them ready.
func (t *Table) build(ctx context.Context, indexes, fresh []*index) error {
	if err := t.fill(ctx, fresh); err != nil {
		return err
	}
	if slices.ContainsFunc(fresh, func(ix *index) bool { return ix.Unique }) {
		indexes, fresh = restate(indexes, fresh, indexChecking)
		if err := t.change(indexes, t.db.commit); err != nil {
			return err
		}
		for _, ix := range fresh {
			if !ix.Unique {
				continue
			}
			if err := t.checkUnique(ctx, ix); err != nil {
				return err
			}
		}
	}
	indexes, _ = restate(indexes, fresh, indexReady)
	return t.change(indexes, t.db.commit)
}

// restate returns the lists with fresh in another state.
func restate(indexes, fresh []*index, state indexState) (all, changed []*index) {
	all = slices.Clone(indexes)
	for i, ix := range all {
		if slices.ContainsFunc(fresh, func(o *index) bool { return o.number == ix.number }) {
			next := *ix
			next.state = state
			all[i] = &next
			changed = append(changed, &next)
		}
	}
	return all, changed
}

// discard takes indexes out, with their entries. What it does not get through is tried again: see unfinished. Under t.building.
func (t *Table) discard(gone []*index) error {
	err := t.takeOut(gone)
	if err != nil {
		t.db.unfinished.add(t)
	}
	return err
}

// takeOut takes indexes out: first everybody stops using them, then their entries go.
func (t *Table) takeOut(gone []*index) error {
	if t.version.Load().dropped {
		return nil
	}
	indexes, dropping := restate(t.version.Load().indexes, gone, indexDropping)
	for _, ix := range dropping {
		ix.flags.dropped.Store(true)
	}
	if err := t.change(indexes, t.db.commitFromReserve); err != nil {
		return err
	}
	t.db.ddl.Lock()
	defer t.db.ddl.Unlock()
	if t.version.Load().dropped {
		return nil
	}
	kept := slices.DeleteFunc(slices.Clone(indexes), func(ix *index) bool { return ix.state == indexDropping })
	b := t.db.pebble.NewBatch()
	defer b.Close()
	err := t.record(kept).put(b)
	for _, ix := range dropping {
		err = errors.Join(err, t.deleteEntries(b, ix))
	}
	if err != nil {
		return fmt.Errorf("drop indexes of %s: %w", t.Name(), err)
	}
	if err := t.db.commitFromReserve(b); err != nil {
		return err
	}
	t.publish(newVersion(kept))
	return nil
}

// deleteEntries adds the deletion of all that an index has to a batch.
func (t *Table) deleteEntries(b *pebble.Batch, ix *index) error {
	flags := appendArraysKey(nil, t.id, ix.number, 0)
	return errors.Join(b.DeleteRange(ix.prefix, ix.end, nil), b.DeleteRange(flags, append(flags[:len(flags)-1:len(flags)-1], 0xff), nil))
}

// DropIndexes removes indexes by name; "*" means all but _id_. IndexNotFound names the missing one; then none is removed.
func (db *DB) DropIndexes(name Name, indexes []string) (before int, err error) {
	if err := db.begin(); err != nil {
		return 0, err
	}
	defer db.end()
	t, ok := db.Table(name)
	if !ok {
		return 0, mongoerr.New(mongoerr.NamespaceNotFound, "ns not found %s", name)
	}
	t.building.Lock()
	defer t.building.Unlock()
	if err := t.discardUnfinished(); err != nil {
		return 0, err
	}
	v := t.version.Load()
	before = len(v.indexes) + 1
	var gone []*index
	for _, one := range indexes {
		if one == "*" {
			gone = v.indexes
			break
		}
		if one == idIndexName {
			return before, mongoerr.New(mongoerr.InvalidOptions, "cannot drop _id index")
		}
		i := slices.IndexFunc(v.indexes, func(ix *index) bool { return ix.Name == one })
		if i < 0 {
			return before, mongoerr.New(mongoerr.IndexNotFound, "index not found with name [%s]", one)
		}
		if !slices.Contains(gone, v.indexes[i]) {
			gone = append(gone, v.indexes[i])
		}
	}
	if len(gone) == 0 {
		return before, nil
	}
	if err := t.discard(gone); err != nil {
		return before, err
	}
	return before, db.sync()
}
