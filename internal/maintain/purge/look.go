package purge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
	"oxbow/internal/route"
)

// Unknown stands for a figure that could not be had.
const Unknown = -1

// Collection is what a collection is like, for what is to go from it. Figures may be Unknown.
type Collection struct {
	Namespace  string      `json:"namespace"`
	TimeField  string      `json:"timeField"` // that the predicate names
	Documents  int64       `json:"documents"`
	Bytes      int64       `json:"bytes"`
	IndexBytes int64       `json:"indexBytes"`
	Indexes    []string    `json:"indexes"`
	Cache      int64       `json:"cacheBytes"`   // of the server's storage engine
	Matches    int64       `json:"matches"`      // documents that go now
	Arrival    float64     `json:"arrival"`      // documents a second that come, of the collection as a whole
	ArrivalOf  string      `json:"arrivalOf"`    // how that is known, or why not
	Held       []Held      `json:"held"`         // what the time field holds; nil: the predicate has none
	HeldNote   string      `json:"heldNote"`     // why some of that is not known, ""
	UnitNote   string      `json:"unitNote"`     // that most of it tells time in another unit than the predicate's, ""
	Entry      int64       `json:"oplogEntry"`   // bytes that one deleted document takes in the oplog
	EntryNote  string      `json:"oplogNote"`    // where there is no oplog
	Keyed      string      `json:"keyedIndex"`   // index that gives what goes in order, "": none
	Reached    string      `json:"reachedIndex"` // index that leads to what goes; "": none, or several
	Refused    string      `json:"refused"`      // why there is neither
	Ordered    string      `json:"orderRefused"` // why there is no Keyed
	Parts      []PartFacts `json:"parts"`        // that can be dropped whole; nil: none
	Expiry     *Expiry     `json:"expiry"`       // by a TTL index; nil: there is none
}

// PartFacts is a Part without its backend.
type PartFacts struct {
	Name      string    `json:"name"`
	Start     time.Time `json:"start"`
	End       time.Time `json:"end"`
	Documents int64     `json:"documents"`
	Bytes     int64     `json:"bytes"`
	Due       bool      `json:"due"` // its time is over
}

// Held is one kind of value in the time field.
type Held struct {
	What  string `json:"what"`
	Count int64  `json:"count"`
	Goes  bool   `json:"goes"`
}

// Look finds out what a collection is like. It reads figures, indexes and keys, and counts for a few seconds at most each.
func Look(ctx context.Context, t Target, p Predicate, parts Parts, now time.Time) (*Collection, error) {
	l := &look{collection: collection{t, defaultComment}, predicate: p, what: p.at(now), now: now}
	l.facts = Collection{Namespace: t.Namespace.String(), TimeField: p.Field, Cache: Unknown, Matches: Unknown, Arrival: Unknown, Entry: Unknown}
	for _, step := range []func(context.Context) error{l.figures, l.reach, l.arrival, l.held, l.doubt, l.cost} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	if parts != nil {
		if err := l.parts(ctx, parts); err != nil {
			return nil, err
		}
	}
	var err error
	l.facts.Expiry, err = l.expiry(ctx, now)
	if l.facts.Expiry != nil {
		l.facts.Expiry.Rate = Unknown
	}
	return &l.facts, err
}

// look is one Look.
type look struct {
	collection
	predicate Predicate
	what      cut
	now       time.Time
	specs     []bson.Document
	facts     Collection
}

func (l *look) figures(ctx context.Context) error {
	reply, err := l.run(ctx, l.Backend, bsoncore.NewDocumentBuilder().AppendString("collStats", l.Target.Namespace.Collection))
	if err != nil && !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
		return err
	}
	l.facts.Documents, l.facts.Bytes, l.facts.IndexBytes = number(reply, "count"), number(reply, "size"), number(reply, "totalIndexSize")
	if l.specs, err = l.indexes(ctx); err != nil {
		return err
	}
	for _, spec := range l.specs {
		l.facts.Indexes = append(l.facts.Indexes, keyText(spec))
	}
	status, err := l.run(ctx, l.Backend, bsoncore.NewDocumentBuilder().AppendInt32("serverStatus", 1))
	if err == nil {
		if v, err := bsoncore.Document(status).LookupErr("wiredTiger", "cache", "maximum bytes configured"); err == nil {
			f, _ := v.AsFloat64OK()
			l.facts.Cache = int64(f)
		}
	}
	return nil
}

// keyText writes an index's keys as the shell does: {time: 1}.
func keyText(spec bson.Document) string {
	key, _ := bson.Get(spec, "key")
	var fields []string
	for it := bson.Elements(key.Data); it.Next(); {
		direction := it.Value().String()
		if n, ok := bson.NumberOf(it.Value()); ok {
			direction = n.String()
		}
		fields = append(fields, string(it.Key())+": "+direction)
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// number is a figure of a reply.
func number(reply bson.Document, name string) int64 {
	v, ok := bson.Get(reply, name)
	f, isNumber := v.AsFloat64OK()
	if !ok || !isNumber {
		return Unknown
	}
	return int64(f)
}

// reach looks for indexes that lead to what goes.
func (l *look) reach(ctx context.Context) error {
	if l.predicate.Check() != nil { // only names of collections say what goes
		l.facts.Refused, l.facts.Ordered = undirected, undirected
		return nil
	}
	key := l.what.time
	if key.path == "" {
		key, _ = boundedSpan(l.what.filter)
	}
	var refusal *Refusal
	if key.path == "" {
		l.facts.Ordered = "the filter bounds no key by comparisons"
	} else if a, err := l.keyed(ctx, l.what, key.path); errors.As(err, &refusal) {
		l.facts.Ordered = refusal.Error()
	} else if err != nil {
		return err
	} else {
		l.facts.Keyed = a.index
	}
	a, err := l.reached(ctx, l.what)
	switch {
	case errors.As(err, &refusal):
		l.facts.Refused = refusal.Error()
		return nil
	case err != nil:
		return err
	}
	l.facts.Reached = a.index
	l.facts.Matches = l.counted(ctx, l.what.filter, a.hint())
	return nil
}

// undirected is why documents can't be deleted one by one where only the names of collections say what goes.
const undirected = "it needs a time field or a filter"

// countTime is how long a plan counts documents before it says that their number is not known.
const countTime = 2 * time.Second

// counted counts in the time that there is.
func (l *look) counted(ctx context.Context, filter bson.Document, hint bson.Value) int64 {
	n, err := l.count(ctx, filter, hint, countTime)
	if err != nil {
		return Unknown
	}
	return n
}

// arrival counts what came lately, by the time field or by the time within ObjectIds.
func (l *look) arrival(ctx context.Context) error {
	type way struct {
		path, index string
		unit        route.Unit
	}
	var ways []way
	if l.what.time.path != "" && l.facts.Keyed != "" {
		ways = append(ways, way{l.what.time.path, l.facts.Keyed, l.predicate.Unit})
	}
	ways = append(ways, way{"_id", "_id_", route.ObjectID})
	for _, w := range ways {
		for _, since := range []time.Duration{time.Hour, 24 * time.Hour} {
			s := span{path: w.path, lo: unitValue(w.unit, l.now.Add(-since)), hi: unitValue(w.unit, l.now)}
			if w.index != "_id_" && len(equalities(l.what.filter)) > 0 {
				break // the index may begin with what the filter holds, and not with the time
			}
			n := l.counted(ctx, s.filter(), text(w.index))
			if n > 0 {
				l.facts.Arrival = float64(n) / since.Seconds()
				l.facts.ArrivalOf = fmt.Sprintf("%d documents by %s in the last %s", n, w.path, strings.TrimSuffix(since.String(), "0m0s"))
				return nil
			}
		}
	}
	l.facts.ArrivalOf = "no index tells when documents came, or none came in the last day, or counting takes too long"
	return nil
}

// smallCollection is how many documents are looked at to find out what the time field holds where no index tells.
const smallCollection = 100_000

// held counts what the time field holds.
func (l *look) held(ctx context.Context) error {
	path := l.what.time.path
	if path == "" {
		return nil
	}
	hint := bson.Value{}
	sparse := false
	for _, spec := range l.specs {
		keys, name, ok := plainIndex(spec)
		if v, _ := bson.Get(spec, "sparse"); ok && keys[0] == path {
			hint, sparse = text(name), v.Type == bson.TypeBoolean && v.Boolean()
			break
		}
	}
	known := hint.Type != 0 || l.facts.Documents >= 0 && l.facts.Documents <= smallCollection
	if !known {
		return l.sampled(ctx, path)
	}
	counted := int64(0)
	for _, k := range l.kinds(path) {
		n := int64(Unknown)
		if !sparse || !k.absent {
			n = l.counted(ctx, k.filter, hint)
		}
		if n < 0 || counted < 0 {
			counted = Unknown
		} else {
			counted += n
		}
		if n != 0 {
			l.facts.Held = append(l.facts.Held, Held{k.what, n, k.goes})
		}
	}
	switch rest := l.facts.Documents - counted; {
	case counted < 0:
		l.facts.HeldNote = "some were not counted, since that takes too long or the index leaves them out"
	case rest > 0 && l.facts.Documents >= 0:
		l.facts.Held = append(l.facts.Held, Held{"of another type", rest, false})
	}
	return nil
}

// sampleSize is how many documents are looked at where all can't be.
const sampleSize = 1000

// sampled counts what the time field holds in the first documents that the server gives.
func (l *look) sampled(ctx context.Context, path string) error {
	l.facts.HeldNote = fmt.Sprintf("of the first %d documents only: no index begins with %s, and the collection is too large to read it whole", sampleSize, path)
	docs, err := l.find(ctx, find{projection: fieldsOnly(path), limit: sampleSize})
	if err != nil {
		return err
	}
	rest := int64(len(docs))
	for _, k := range l.kinds(path) {
		filter, err := query.ParseFilter(k.filter, query.Env{})
		if err != nil {
			return err
		}
		n := int64(0)
		for _, d := range docs {
			if ok, err := filter.Match(d); err == nil && ok {
				n++
			}
		}
		if n > 0 {
			l.facts.Held = append(l.facts.Held, Held{k.what, n, k.goes})
		}
		rest -= n
	}
	if rest > 0 {
		l.facts.Held = append(l.facts.Held, Held{"of another type", rest, false})
	}
	return nil
}

// heldKind is a filter for one kind of value.
type heldKind struct {
	what   string
	filter bson.Document
	goes   bool
	absent bool   // a sparse index does not have it
	units  string // by which its values may tell time, where it is another one's
}

// doubt says so where most of what the time field holds is a time in another unit than the predicate's.
func (l *look) doubt(context.Context) error {
	all := int64(0)
	for _, h := range l.facts.Held {
		all += max(h.Count, 0)
	}
	for _, k := range l.kinds(l.what.time.path) {
		most := slices.ContainsFunc(l.facts.Held, func(h Held) bool { return h.What == k.what && h.Count > all/2 })
		if most && k.units != "" {
			what, _, _ := strings.Cut(k.what, ":")
			l.facts.UnitNote = fmt.Sprintf("most documents have %s there, which the unit %s reads", what, k.units)
		}
	}
	return nil
}

// kinds are the kinds of values that are told apart.
func (l *look) kinds(path string) []heldKind {
	s := l.what.time
	older, newer, future := s, s, s
	older.lo, older.hi = bson.Value{}, s.lo
	newer.lo, newer.hi = s.hi, unitValue(l.predicate.Unit, l.now.AddDate(1, 0, 0))
	future.lo, future.hi = newer.hi, bson.Value{}
	if bson.Compare(newer.lo, newer.hi) > 0 {
		newer.hi, future.lo = s.hi, s.hi
	}
	unit := l.predicate.Unit.String()
	from := l.predicate.From
	if from.IsZero() {
		from = DefaultFrom
	}
	otherwise := map[route.Unit]string{route.Seconds: "ms", route.Milliseconds: "s"}[l.predicate.Unit]
	due := "a time before the cut"
	if len(l.predicate.Where) > emptyLength {
		due += ", before the filter is asked"
	}
	kinds := []heldKind{
		{what: due, filter: and(s.filter(), noArrays(path)), goes: true},
		{what: "a time that is not over", filter: and(newer.filter(), noArrays(path))},
		{what: fmt.Sprintf("a time before %s: as %s it may be in another unit", from.UTC().Format(time.DateOnly), unit), filter: and(older.filter(), noArrays(path)), units: otherwise},
		{what: fmt.Sprintf("a time more than a year ahead: as %s it may be in another unit", unit), filter: and(future.filter(), noArrays(path)), units: otherwise},
		{what: "missing", filter: exists(path, false), absent: true},
		{what: "null", filter: and(ofType(path, "null"), noArrays(path))},
		{what: "a string", filter: and(ofType(path, "string"), noArrays(path))},
		{what: "an array", filter: ofType(path, "array")},
	}
	for _, other := range []struct {
		what, name, units string
		unit              []route.Unit
	}{
		{"a date", "date", "date", []route.Unit{route.Date}},
		{"a number", "number", "s or ms", []route.Unit{route.Seconds, route.Milliseconds}},
		{"an ObjectId", "objectId", "objectId", []route.Unit{route.ObjectID}},
	} {
		own := false
		for _, u := range other.unit {
			own = own || u == l.predicate.Unit
		}
		if !own {
			kinds = append(kinds, heldKind{what: other.what, filter: and(ofType(path, other.name), noArrays(path)), units: other.units})
		}
	}
	return kinds
}

func ofType(path, name string) bson.Document {
	return bson.Document(bsoncore.NewDocumentBuilder().StartDocument(path).AppendString("$type", name).FinishDocument().Build())
}

func exists(path string, want bool) bson.Document {
	return bson.Document(bsoncore.NewDocumentBuilder().StartDocument(path).AppendBoolean("$exists", want).FinishDocument().Build())
}

// cost is what a deleted document takes in the oplog.
func (l *look) cost(ctx context.Context) error {
	if l.Backend.Abilities().Embedded {
		l.facts.EntryNote = "none: the embedded engine has no oplog"
		return nil
	}
	hello, err := l.run(ctx, l.Backend, bsoncore.NewDocumentBuilder().AppendInt32("hello", 1))
	if err != nil {
		return err
	}
	_, set := bson.Get(hello, "setName")
	msg, _ := bson.Get(hello, "msg")
	router, _ := msg.StringValueOK()
	switch {
	case l.isOxbow(ctx):
		l.facts.EntryNote = "not known: it depends on the gateway's backends"
		return nil
	case !set && router != "isdbgrid":
		l.facts.EntryNote = "none: the server is in no replica set"
		return nil
	}
	some, err := l.find(ctx, find{projection: fieldsOnly("_id"), limit: 1})
	if err != nil || len(some) == 0 {
		return err
	}
	id, _ := bson.Get(some[0], "_id")
	l.facts.Entry = OplogBytes(l.Target.Namespace.String(), id)
	return nil
}

// isOxbow reports whether the server is a gateway.
func (l *look) isOxbow(ctx context.Context) bool {
	status, err := l.run(ctx, l.Backend, bsoncore.NewDocumentBuilder().AppendInt32("serverStatus", 1))
	if err != nil {
		return false
	}
	_, has := bson.Get(status, "oxbow")
	return has
}

func (l *look) parts(ctx context.Context, parts Parts) error {
	all, err := parts.List(ctx)
	if err != nil {
		return fmt.Errorf("list what may be dropped: %w", err)
	}
	for _, p := range all {
		if l.predicate.tellsTimeOf(p) != nil {
			return nil
		}
		l.facts.Parts = append(l.facts.Parts, PartFacts{p.Name, p.Start, p.End, p.Documents, p.Bytes, l.predicate.wholly(p, l.now)})
	}
	return nil
}

// First returns the _ids of the first documents that go, in the order in which a strategy comes to them.
func First(ctx context.Context, t Target, p Predicate, now time.Time, most int) ([]bson.Value, error) {
	c := &collection{t, defaultComment}
	what := p.at(now)
	a, err := c.reached(ctx, what)
	if err != nil {
		return nil, err
	}
	docs, err := c.find(ctx, find{filter: what.filter, projection: fieldsOnly("_id"), hint: a.hint(), limit: most})
	return idsOf(docs), err
}
