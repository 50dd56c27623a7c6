package plan

import (
	"oxbow/internal/bson"
	"oxbow/internal/query"
	"oxbow/internal/route"
	"oxbow/internal/statement"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// FindAndModify is the plan of a findAndModify. With one target and nothing to guard the command goes there whole. With several and no sort they are
// tried in turn; with a sort, the gateway first finds the _id of the document that comes first.
type FindAndModify struct {
	Namespace string // the application's
	Routed    Routed
	Command   Command // without upsert: true
	Filter    bson.Document
	Choose    *Find // finds the first document's _id among several targets; nil without a sort
	Guard     *Guard
	Upsert    *Upsert // Statement is the rest of the command with upsert: true
	Missing   []route.Place
	Remove    bool
	Pinned    bool // as in Run
}

// NewFindAndModify plans a findAndModify.
func NewFindAndModify(f *statement.FindAndModify, src Source, newID func() [12]byte, env query.Env) (*FindAndModify, error) {
	filter, err := query.ParseFilter(f.Query, env)
	if err != nil {
		return nil, err
	}
	r, routed := src.route(filter)
	p := &FindAndModify{
		Namespace: src.Namespace(), Routed: latestFirst(routed), Filter: f.Query,
		Command: Command{"findAndModify", modification(f, false)}, Remove: f.Remove, Pinned: r.One != nil,
	}
	if f.Remove {
		return p, p.choose(f, src, env)
	}
	update, err := query.ParseUpdate(f.Update, query.UpdateOptions{Env: env, ArrayFilters: f.ArrayFilters, Filter: filter})
	if err != nil {
		return nil, err
	}
	stay, guard, err := confine(src, update, f.Query, r, routed)
	if err != nil {
		return nil, err
	}
	p.Routed, p.Guard = latestFirst(stay), guard
	if f.Upsert {
		p.upsert(f, src, update, r, newID, env.NowMillis)
	}
	return p, p.choose(f, src, env)
}

// upsert prepares the inserting half; a filter that pins the only place lets the target do both halves at once.
func (p *FindAndModify) upsert(f *statement.FindAndModify, src Source, u *query.Update, r route.Route, newID func() [12]byte, now int64) {
	if p.Guard == nil && len(p.Routed.Targets) == 1 && r.One != nil {
		p.Command.Rest = modification(f, true)
		return
	}
	target, missing, placeErr := upsertPlace(src, u, newID(), now)
	if missing != nil {
		p.Missing = append(p.Missing, *missing)
	}
	p.Upsert = &Upsert{Statement: modification(f, true), Target: target, Err: placeErr}
}

// choose plans the search for the first document in the order of the sort.
func (p *FindAndModify) choose(f *statement.FindAndModify, src Source, env query.Env) error {
	if len(f.Sort) <= len(emptyDocument) || len(p.Routed.Targets)+p.guarded() < 2 {
		return nil
	}
	idOnly, _ := bsoncore.AppendDocumentEnd(bsoncore.AppendInt32Element([]byte{0, 0, 0, 0}, "_id", 1), 0)
	find := &statement.Find{
		Generic: statement.Generic{Database: f.Database, Comment: f.Comment, ReadConcern: f.ReadConcern}, Collection: f.Collection,
		Filter: f.Query, Sort: f.Sort, Projection: idOnly, Hint: f.Hint, Let: f.Let, Limit: 1, BatchSize: -1,
	}
	chosen, err := NewFind(find, src, env)
	p.Choose = chosen
	return err
}

func (p *FindAndModify) guarded() int {
	if p.Guard == nil {
		return 0
	}
	return len(p.Guard.Elsewhere)
}

var emptyDocument = bson.Document{5, 0, 0, 0, 0}

// modification is the command's elements behind its name, the query and the retry's numbers left out: exec adds them.
func modification(f *statement.FindAndModify, upsert bool) []byte {
	dst := appendDocument(nil, "sort", f.Sort)
	dst = appendDocument(dst, "fields", f.Fields)
	dst = appendValue(dst, "update", f.Update)
	if f.ArrayFilters != nil {
		dst = appendDocuments(dst, "arrayFilters", f.ArrayFilters)
	}
	dst = appendValue(dst, "hint", f.Hint)
	dst = appendDocument(dst, "let", f.Let)
	for _, flag := range []struct {
		name string
		set  bool
	}{{"remove", f.Remove}, {"new", f.New}, {"upsert", upsert}} {
		if flag.set {
			dst = bsoncore.AppendBooleanElement(dst, flag.name, true)
		}
	}
	return dst
}

func appendDocuments(dst []byte, name string, docs []bson.Document) []byte {
	b := bsoncore.NewArrayBuilder()
	for _, d := range docs {
		b.AppendDocument(d)
	}
	return bsoncore.AppendArrayElement(dst, name, b.Build())
}
