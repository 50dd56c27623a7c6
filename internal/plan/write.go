package plan

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
	"oxbow/internal/route"
	"oxbow/internal/statement"
)

// Write is the plan of an update or delete on a collection with a layout: its steps in the order of the statements.
type Write struct {
	Name      string // update or delete
	Namespace string // the application's
	Let       bson.Document
	Ordered   bool
	// ByPartition: an ordered write keeps its order within each partition only. What goes at once is what AtOnce says.
	ByPartition bool
	Steps       []Step
	Missing     []route.Place        // as in Insert
	Errors      []backend.WriteError // as in Insert
}

// Step is what becomes of one statement, or of several neighbours that go out together.
type Step interface{ String() string }

type (
	// Together is statements that each concern one partition.
	Together struct{ Run }

	// Each sends a statement for all matching documents to all its targets, and adds the results up.
	Each struct {
		Index     int32
		Statement bson.Document
		Routed    Routed
		Guard     *Guard // looked at first
		Upsert    *Upsert
	}

	// First sends a statement for one document to one target after the other until one had a match, the latest first:
	// that is where updates mostly go.
	First struct {
		Index     int32
		Statement bson.Document
		Routed    Routed
		Guard     *Guard // looked at when no target had a match
		Upsert    *Upsert
		Pinned    bool // as in Run
	}
)

// Guard belongs to an update that sets a layout's field to a constant. The update's own targets are those whose documents the constant
// leaves in place; documents that match elsewhere would have to move, so if there are any the update is refused.
type Guard struct {
	Filter    bson.Document
	Elsewhere []Target
	Err       *mongoerr.Error // what the client gets then
}

// Upsert is where a statement inserts when nothing matched. The statement in the step itself is without its upsert: true.
type Upsert struct {
	Statement bson.Document // with upsert: true
	Target    *Target       // nil: see Err
	Err       *mongoerr.Error
}

// NewUpdate plans an update.
func NewUpdate(u *statement.Update, src Source, abilities Abilities, newID func() [12]byte, env query.Env) *Write {
	w := newWriter("update", u.Let, u.Ordered, src, abilities, env)
	w.newID, w.retry = newID, u.HasTxnNumber
	for i := range u.Updates {
		if err := w.update(int32(i), &u.Updates[i]); err != nil && w.fail(int32(i), err) {
			break
		}
	}
	return w.done()
}

// NewDelete plans a delete.
func NewDelete(d *statement.Delete, src Source, abilities Abilities, env query.Env) *Write {
	w := newWriter("delete", d.Let, d.Ordered, src, abilities, env)
	w.retry = d.HasTxnNumber
	for i := range d.Deletes {
		if err := w.delete(int32(i), &d.Deletes[i]); err != nil && w.fail(int32(i), err) {
			break
		}
	}
	return w.done()
}

// writer plans a write statement by statement.
type writer struct {
	plan  *Write
	src   Source
	group grouping
	env   query.Env
	newID func() [12]byte
	retry bool // the write has a txnNumber
}

func newWriter(name string, let bson.Document, ordered bool, src Source, abilities Abilities, env query.Env) *writer {
	whole := &struct { // one allocation for what a write of one statement needs
		Write
		steps [1]Step
		first firstRun
	}{Write: Write{Name: name, Namespace: src.Namespace(), Let: let, Ordered: ordered, ByPartition: src.ByPartition}}
	whole.Steps = whole.steps[:0]
	return &writer{
		plan: &whole.Write, src: src, env: env,
		group: grouping{neighbours: ordered && !src.ByPartition, abilities: abilities, first: &whole.first, runs: whole.first.runs[:0]},
	}
}

// fail records a statement's error and reports whether planning ends there.
func (w *writer) fail(index int32, err error) bool {
	w.plan.Errors = append(w.plan.Errors, backend.WriteError{Index: index, Err: mongoerr.From(err)})
	return w.plan.Ordered
}

// add appends a step; in an ordered write what was gathered so far goes before it.
func (w *writer) add(s Step) {
	if w.plan.Ordered {
		w.flush()
	}
	w.plan.Steps = append(w.plan.Steps, s)
}

// gather puts a statement that concerns one partition together with others. In an ordered write none overtakes another of its partition.
func (w *writer) gather(t *Target, pinned bool, index int32, statement bson.Document) {
	if w.plan.Ordered && w.group.elsewhere(t, pinned) {
		w.flush()
	}
	w.group.add(t, pinned, index, statement)
}

// flush turns the gathered runs into steps.
func (w *writer) flush() {
	for i := range w.group.runs {
		w.plan.Steps = append(w.plan.Steps, &w.group.runs[i])
	}
	w.group.reset()
}

func (w *writer) done() *Write {
	w.flush()
	return w.plan
}

func (w *writer) delete(index int32, d *statement.DeleteOne) error {
	if w.retry && d.Limit == 0 {
		return mongoerr.New(mongoerr.InvalidOptions, "Cannot use (or request) retryable writes with limit=0")
	}
	if t, ok := w.src.point(d.Filter); ok {
		w.gather(&t, true, index, d.Raw)
		return nil
	}
	filter, err := query.ParseFilter(d.Filter, w.env)
	if err != nil {
		return err
	}
	r, routed := w.src.route(filter)
	switch {
	case len(routed.Targets) == 0:
	case len(routed.Targets) == 1:
		w.gather(&routed.Targets[0], w.pinned(r), index, d.Raw)
	case d.Limit == 0:
		w.add(Each{Index: index, Statement: d.Raw, Routed: routed})
	default:
		w.add(First{Index: index, Statement: d.Raw, Routed: latestFirst(routed)})
	}
	return nil
}

func (w *writer) update(index int32, u *statement.UpdateOne) error {
	if w.retry && u.Multi {
		return mongoerr.New(mongoerr.InvalidOptions, "Cannot use (or request) retryable writes with multi=true")
	}
	if t, ok := w.src.pointOfUpdate(u); ok {
		w.gather(&t, true, index, u.Raw)
		return nil
	}
	filter, err := query.ParseFilter(u.Filter, w.env)
	if err != nil {
		return err
	}
	update, err := parseUpdate(u, filter, w.env)
	if err != nil {
		return err
	}
	r, routed := w.src.route(filter)
	stay, guard, err := confine(w.src, update, u.Filter, r, routed)
	if err != nil {
		return err
	}
	if guard == nil && len(stay.Targets) == 1 && (!u.Upsert || r.One != nil) {
		w.gather(&stay.Targets[0], w.pinned(r), index, u.Raw)
		return nil
	}
	raw, upsert := w.upsert(update, u)
	switch {
	case len(stay.Targets) == 0 && guard == nil && upsert == nil:
	case u.Multi:
		w.add(Each{index, raw, stay, guard, upsert})
	default:
		w.add(First{index, raw, latestFirst(stay), guard, upsert, w.pinned(r)})
	}
	return nil
}

// pinned reports whether a statement goes to the same place at each try, or there is to be one try only: then how it is sent does not matter.
func (w *writer) pinned(r route.Route) bool { return !w.retry || r.One != nil }

func parseUpdate(u *statement.UpdateOne, filter *query.Filter, env query.Env) (*query.Update, error) {
	env, err := env.WithConstants(u.Constants, u.Update)
	if err != nil {
		return nil, err
	}
	return query.ParseUpdate(u.Update, query.UpdateOptions{
		Env: env, ArrayFilters: u.ArrayFilters, Filter: filter, Multi: u.Multi,
	})
}

// upsert splits a statement into its half that only updates and the place where its other half would insert.
func (w *writer) upsert(update *query.Update, u *statement.UpdateOne) (bson.Document, *Upsert) {
	if !u.Upsert {
		return u.Raw, nil
	}
	target, missing, placeErr := upsertPlace(w.src, update, w.newID(), w.env.NowMillis)
	if missing != nil {
		w.plan.Missing = addMissing(w.plan.Missing, *missing)
	}
	return without(u.Raw, "upsert"), &Upsert{Statement: u.Raw, Target: target, Err: placeErr}
}

// upsertPlace finds where the document that an upsert inserts belongs. Its error, that there is no such document or that it has no place,
// matters only when nothing matches.
func upsertPlace(src Source, u *query.Update, id [12]byte, now int64) (*Target, *route.Place, *mongoerr.Error) {
	doc, err := u.Upsert(nil, id)
	if err != nil {
		return nil, nil, mongoerr.From(err)
	}
	place, err := src.Collection.Table.Place(doc, now)
	if err != nil {
		return nil, nil, mongoerr.From(err)
	}
	if place.Partition < 0 {
		return nil, &place, nil
	}
	target := src.target(place.Partition)
	return &target, nil, nil
}

// latestFirst returns targets in the opposite order: latest time range first.
func latestFirst(r Routed) Routed {
	out := make([]Target, len(r.Targets))
	for i, t := range r.Targets {
		out[len(out)-1-i] = t
	}
	r.Targets = out
	return r
}

// without returns doc without the elements of one key.
func without(doc bson.Document, key string) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, len(doc)))
	it := bson.Elements(doc)
	for it.Next() {
		if string(it.Key()) != key {
			dst = append(dst, it.Raw()...)
		}
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
