package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/route"
)

// Outcome is what became of an index command on one partition.
type Outcome struct {
	Partition route.Partition
	Err       error
}

// CreateIndexes adds indexes to a collection: first to its list, so that partitions made from now on have them, then to every partition.
// A specification that the backend refuses on an empty collection, or a unique index that lacks a field of the layout (CannotCreateIndex), is
// refused before anything is stored. created counts indexes that were not in the list. When it fails on some the list keeps the indexes, and the same
// command again, or the next Sweep, resumes; except that a duplicate key takes a new index back everywhere, and is returned as err. It creates the collection if need be.
func (c *Catalog) CreateIndexes(ctx context.Context, ns string, specs []bson.Document) (created int, outcomes []Outcome, err error) {
	g, err := c.gate(ns)
	if err != nil {
		return 0, nil, err
	}
	release, err := c.enter(ctx, ns, g.indexing)
	if err != nil {
		return 0, nil, err
	}
	defer release()
	specs = withoutID(specs)
	fresh, err := c.checkIndexes(ctx, ns, specs)
	if err != nil {
		return 0, nil, err
	}
	behind := c.Snapshot().Collection(ns).record.indexing
	fresh, listed, err := c.listIndexes(ctx, g, ns, fresh)
	if err != nil {
		return 0, nil, err
	}
	outcomes, err = c.onPartitions(ctx, g, ns, func(d deployment, p route.Partition) error {
		return d.createIndexes(ctx, p.Database, p.Collection, specs)
	})
	if err != nil {
		return len(fresh), outcomes, err
	}
	if duplicate := firstDuplicate(outcomes); duplicate != nil && len(fresh) > 0 {
		_, _, err := c.unlistIndexes(ctx, g, ns, indexNames(fresh))
		return 0, nil, errors.Join(duplicate, err)
	}
	if !behind && len(fresh) > 0 && allDone(outcomes) {
		err = c.markIndexed(ctx, g, ns, listed)
	}
	return len(fresh), outcomes, err
}

// DropIndexes drops the indexes that the index argument of a dropIndexes command names: a name, an array of names, a key document, or "*".
func (c *Catalog) DropIndexes(ctx context.Context, ns string, index bson.Value) (outcomes []Outcome, err error) {
	g, err := c.gate(ns)
	if err != nil {
		return nil, err
	}
	release, err := c.enter(ctx, ns, g.indexing)
	if err != nil {
		return nil, err
	}
	defer release()
	col := c.Snapshot().Collection(ns)
	if !col.Created {
		return nil, mongoerr.New(mongoerr.NamespaceNotFound, "ns not found %s", ns)
	}
	names, err := col.indexesNamed(index)
	if err != nil {
		return nil, err
	}
	behind := col.record.indexing
	outcomes, listed, err := c.unlistIndexes(ctx, g, ns, names)
	if err == nil && !behind && allDone(outcomes) {
		err = c.markIndexed(ctx, g, ns, listed)
	}
	return outcomes, err
}

// checkIndexes returns the specifications that are not in a collection's list yet, and an error for those that can't be.
func (c *Catalog) checkIndexes(ctx context.Context, ns string, specs []bson.Document) (fresh []bson.Document, err error) {
	col := c.Snapshot().Collection(ns)
	for _, spec := range specs {
		if err := col.checkUnique(spec); err != nil {
			return nil, err
		}
		known, err := col.hasIndex(spec)
		if err != nil {
			return nil, err
		}
		if !known {
			fresh = append(fresh, slices.Clone(spec))
		}
	}
	if len(fresh) == 0 {
		return nil, nil
	}
	return fresh, c.tryIndexes(ctx, col, slices.Concat(col.Indexes, fresh))
}

// trialPrefix begins the names of the collections that indexes are tried on.
const trialPrefix = "trial_"

// tryIndexes makes indexes on an empty collection of the catalog's own database on one of the collection's backends, and drops it again: the
// backend's own judgement, before anything of the collection has changed.
func (c *Catalog) tryIndexes(ctx context.Context, col *Collection, specs []bson.Document) error {
	d := c.backends[col.config.Over[0]]
	name := fmt.Sprintf("%s%x", trialPrefix, newUUID())
	err := d.create(ctx, c.Database(), name, col.Options)
	if err == nil {
		err = d.createIndexes(ctx, c.Database(), name, specs)
	}
	// The trial goes even when the client has gone.
	if dropErr := d.drop(context.WithoutCancel(ctx), c.Database(), name); dropErr != nil && err == nil {
		err = dropErr
	}
	return aboutCollection(err, backend.Namespace{Database: c.Database(), Collection: name}, col.Namespace())
}

// checkUnique refuses a unique index that lacks a field of the layout: documents of two partitions could have the same key.
func (col *Collection) checkUnique(spec bson.Document) error {
	if unique, _ := bson.Get(spec, "unique"); !isTrue(unique) {
		return nil
	}
	key, _ := bson.Get(spec, "key")
	for _, field := range col.layoutFields() {
		if _, ok := bson.Get(key.Data, field); !ok {
			return mongoerr.New(mongoerr.CannotCreateIndex,
				"the unique index on %s must hold the field '%s' of the layout of %s: without it, equal keys could lie in two partitions",
				fieldList(key.Data), field, col.Namespace())
		}
	}
	return nil
}

// fieldList names the fields of an index key in its order.
func fieldList(key bson.Document) string {
	var names []string
	for it := bson.Elements(key); it.Next(); {
		names = append(names, "'"+string(it.Key())+"'")
	}
	return strings.Join(names, ", ")
}

func isTrue(v bson.Value) bool {
	if b, ok := v.BooleanOK(); ok {
		return b
	}
	n, ok := bson.NumberOf(v)
	return ok && !n.IsZero()
}

// layoutFields returns the paths of the layout's fields.
func (col *Collection) layoutFields() []string {
	var list []string
	if t := col.Table.Layout.Time; t != nil {
		list = append(list, t.Field.String())
	}
	if h := col.Table.Layout.Hash; h != nil {
		list = append(list, h.Field.String())
	}
	return list
}

// hasIndex reports whether a specification is in the list. One of the same name with another key, or the same key under another name or with
// other options, is MongoDB's error.
func (col *Collection) hasIndex(spec bson.Document) (bool, error) {
	name, key := nameOf(spec), keyOf(spec)
	for _, known := range col.Indexes {
		sameName, sameKey := nameOf(known) == name, slices.Equal(keyOf(known), key)
		switch {
		case sameName && !sameKey:
			return false, mongoerr.New(mongoerr.IndexKeySpecsConflict, "An existing index has the same name as the requested index. When index names are not specified, they are auto generated and can cause conflicts. Please refer to our documentation. Requested index: %s, existing index: %s", spec, known)
		case sameName && sameSpec(known, spec):
			return true, nil
		case sameName:
			return false, mongoerr.New(mongoerr.IndexOptionsConflict, "An equivalent index already exists with the same name but different options. Requested index: %s, existing index: %s", spec, known)
		case sameKey && sameSpec(known, spec):
			return false, mongoerr.New(mongoerr.IndexOptionsConflict, "Index already exists with a different name: %s", nameOf(known))
		}
	}
	return false, nil
}

// sameSpec compares two specifications, whatever the order of their options, without name and version.
func sameSpec(a, b bson.Document) bool {
	return covers(a, b) && covers(b, a)
}

// covers reports whether b has all that a has. An option that is false is as one that is not there.
func covers(a, b bson.Document) bool {
	it := bson.Elements(a)
	for it.Next() {
		switch key := string(it.Key()); key {
		case "name", "v", "ns", "background", "dropDups":
		default:
			v := it.Value()
			o, ok := bson.Get(b, key)
			if !ok && v.Type == bson.TypeBoolean && !isTrue(v) {
				continue
			}
			if !ok || !bson.Equal(v, o) {
				return false
			}
		}
	}
	return true
}

func nameOf(spec bson.Document) string {
	v, _ := bson.Get(spec, "name")
	s, _ := v.StringValueOK()
	return s
}

func keyOf(spec bson.Document) bson.Document {
	v, _ := bson.Get(spec, "key")
	return v.Data
}

// withoutID leaves out {_id: 1}, which every collection has.
func withoutID(specs []bson.Document) []bson.Document {
	return slices.DeleteFunc(slices.Clone(specs), func(spec bson.Document) bool {
		return isIDKey(keyOf(spec))
	})
}

// isIDKey reports whether an index's key is {_id: 1}.
func isIDKey(key bson.Document) bool {
	it := bson.Elements(key)
	if !it.Next() || string(it.Key()) != "_id" {
		return false
	}
	n, ok := bson.NumberOf(it.Value())
	return ok && n.Sign() > 0 && !it.Next()
}

func indexNames(specs []bson.Document) []string {
	var list []string
	for _, spec := range specs {
		list = append(list, nameOf(spec))
	}
	return list
}

// listIndexes adds indexes to a collection's list, those that another gateway has not added meanwhile, and returns these and the change that listed
// them; the collection exists afterwards.
func (c *Catalog) listIndexes(ctx context.Context, g *gate, ns string, wanted []bson.Document) (fresh []bson.Document, listed int64, err error) {
	err = c.relist(ctx, g, ns, func(col *Collection) ([]bson.Document, error) {
		fresh = nil
		for _, spec := range wanted {
			known, err := col.hasIndex(spec)
			if err != nil {
				return nil, err
			}
			if !known {
				fresh = append(fresh, spec)
			}
		}
		return slices.Concat(col.Indexes, fresh), nil
	})
	if err != nil {
		return nil, 0, err
	}
	return fresh, c.Snapshot().Collection(ns).record.listed, nil
}

// unlistIndexes takes indexes off a collection's list and drops them on every partition. listed is the change that did it.
func (c *Catalog) unlistIndexes(ctx context.Context, g *gate, ns string, names []string) (outcomes []Outcome, listed int64, err error) {
	err = c.relist(ctx, g, ns, func(col *Collection) ([]bson.Document, error) {
		return slices.DeleteFunc(slices.Clone(col.Indexes), func(spec bson.Document) bool { return slices.Contains(names, nameOf(spec)) }), nil
	})
	if err != nil {
		return nil, 0, err
	}
	listed = c.Snapshot().Collection(ns).record.listed
	outcomes, err = c.onPartitions(ctx, g, ns, func(d deployment, p route.Partition) error {
		var errs []error
		for _, name := range names {
			errs = append(errs, d.dropIndex(ctx, p.Database, p.Collection, name))
		}
		return errors.Join(errs...)
	})
	return outcomes, listed, err
}

// relist stores another list of indexes, which partitions are about to follow: see markIndexed. The collection exists afterwards. Where other gateways share
// the catalog, each has seen the list then, and all partitions that were made before are known: see alignNew.
func (c *Catalog) relist(ctx context.Context, g *gate, ns string, list func(*Collection) ([]bson.Document, error)) error {
	release, err := c.enter(ctx, ns, g.changes)
	if err != nil {
		return err
	}
	changed := false
	err = c.deciding(ctx, func() error {
		if !c.Snapshot().Collection(ns).Created {
			if err := c.markCreated(ctx, ns, nil); err != nil {
				return err
			}
			changed = true
		}
		col := c.Snapshot().Collection(ns)
		indexes, err := list(col)
		if err != nil || sameList(indexes, col.Indexes) {
			return err
		}
		changed = true
		r := *col.record
		r.indexes, r.indexing, r.listed, r.lister = indexes, true, max(0, r.change)+1, c.members.self()
		return c.storeRecord(ctx, r)
	})
	release()
	if err != nil || !changed || !c.Shared() {
		return err
	}
	told, err := c.members.announce(ctx)
	if err == nil {
		err = c.members.awaitSeen(ctx, told)
	}
	if err != nil {
		return err
	}
	return c.reload(ctx)
}

// onPartitions runs f on each partition that is there, one at a time. Between two, and during none, partitions may be dropped.
func (c *Catalog) onPartitions(ctx context.Context, g *gate, ns string, f func(deployment, route.Partition) error) ([]Outcome, error) {
	var outcomes []Outcome
	for _, p := range c.Snapshot().Collection(ns).All {
		if !indexed(p.State) {
			continue
		}
		if err := g.physical.acquire(ctx); err != nil {
			return outcomes, err
		}
		col := c.Snapshot().Collection(ns)
		if now := col.Partition(p.Name()); now != nil && indexed(now.State) {
			d, err := c.deployment(p)
			if err == nil {
				err = aboutCollection(c.atWork(ns, p, func() error { return f(d, p) }), backend.Namespace{Database: p.Database, Collection: p.Collection}, ns)
			}
			if !errors.Is(err, errLost) { // it is being dropped through another gateway
				outcomes = append(outcomes, Outcome{Partition: p, Err: err})
			}
		}
		g.physical.release()
	}
	return outcomes, nil
}

// indexed reports whether a partition in a state has the collection's indexes.
func indexed(s route.State) bool {
	return s == route.Active || s == route.Hidden || s == route.Returning
}

// aboutCollection is a backend's error on a physical collection as the application gets it: with the name of its own collection.
func aboutCollection(err error, physical backend.Namespace, ns string) error {
	var refused *mongoerr.Error
	if errors.As(err, &refused) {
		if renamed := backend.RenameError(refused, physical, ns); renamed != refused {
			return renamed
		}
	}
	return err
}

func firstDuplicate(outcomes []Outcome) error {
	for _, t := range outcomes {
		if mongoerr.Is(t.Err, mongoerr.DuplicateKey) {
			return t.Err
		}
	}
	return nil
}

// indexesNamed returns the names of the indexes that a dropIndexes command's argument means.
func (col *Collection) indexesNamed(index bson.Value) ([]string, error) {
	switch index.Type {
	case bson.TypeString:
		name, _ := index.StringValueOK()
		if name == "*" {
			return indexNames(col.Indexes), nil
		}
		return col.namesKnown(name)
	case bson.TypeArray:
		var list []string
		it := bson.Elements(index.Data)
		for it.Next() {
			name, ok := it.Value().StringValueOK()
			if !ok {
				return nil, mongoerr.New(mongoerr.TypeMismatch, "dropIndexes takes an array of index names, not of %s", bson.TypeName(it.Value().Type))
			}
			list = append(list, name)
		}
		return col.namesKnown(list...)
	case bson.TypeDocument:
		if isIDKey(index.Data) {
			return col.namesKnown("_id_")
		}
		for _, spec := range col.Indexes {
			if bson.Equal(bson.Value{Type: bson.TypeDocument, Data: keyOf(spec)}, index) {
				return []string{nameOf(spec)}, nil
			}
		}
		return nil, mongoerr.New(mongoerr.IndexNotFound, "can't find index with key: %s", index)
	}
	return nil, mongoerr.New(mongoerr.TypeMismatch, "dropIndexes takes a name, an array of names or a key, not a %s", bson.TypeName(index.Type))
}

// namesKnown returns names that are all in the list.
func (col *Collection) namesKnown(names ...string) ([]string, error) {
	for _, name := range names {
		if name == "_id_" {
			return nil, mongoerr.New(mongoerr.InvalidOptions, "cannot drop _id index")
		}
		if !slices.Contains(indexNames(col.Indexes), name) {
			return nil, mongoerr.New(mongoerr.IndexNotFound, "index not found with name [%s]", name)
		}
	}
	return names, nil
}
