package purge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
)

// access is how a strategy reaches the documents that go.
type access struct {
	index string        // name of the index that every command is told to use; "": several, as the server chose
	held  bson.Document // a filter for the index's keys before the one that gives the order; nil: there are none
}

// hint is the index for a command.
func (a access) hint() bson.Value {
	if a.index == "" {
		return bson.Value{}
	}
	return text(a.index)
}

// keys is a filter for the keys of a span, which the index alone decides.
func (a access) keys(s span) bson.Document { return and(s.filter(), a.held) }

// keyed finds an index that gives the documents of a cut in the order of a key, and makes sure that the server uses it.
func (c *collection) keyed(ctx context.Context, cut cut, key string) (access, error) {
	a, arrays, err := c.leading(ctx, cut, key, ascending(key))
	if err == nil && arrays {
		return a, &Refusal{Reason: fmt.Sprintf("documents of %s have arrays in %s, so %s gives them in no order: use ids", c.Namespace, key, a.index)}
	}
	return a, err
}

// reached finds an index that leads to the documents of a cut.
func (c *collection) reached(ctx context.Context, cut cut) (access, error) {
	if cut.time.path == "" {
		return c.chosen(ctx, cut.filter)
	}
	a, _, err := c.leading(ctx, cut, cut.time.path, nil)
	return a, err
}

// hintGone reports whether a command was refused because the index that it was told to use is not there any more: then another one may lead there, or none.
func hintGone(err error) bool {
	return mongoerr.Is(err, mongoerr.BadValue) && strings.Contains(err.Error(), "hint provided does not correspond to an existing index")
}

// leading finds an index that leads to a key, if asked for in its order, and tells whether it has arrays.
func (c *collection) leading(ctx context.Context, cut cut, key string, order bson.Document) (a access, arrays bool, err error) {
	specs, err := c.indexes(ctx)
	if err != nil {
		return access{}, false, err
	}
	held := equalities(cut.filter)
	for _, ix := range keyIndexes(specs, key, held) {
		plan, err := c.planOf(ctx, find{filter: cut.filter, sort: order, hint: text(ix.name)})
		if err != nil {
			return access{}, false, err
		}
		if !plan.scans() && (plan.arrays || !plan.sorts) {
			return access{ix.name, heldFilter(ix.before, held)}, plan.arrays, nil
		}
	}
	if len(specs) == 0 {
		return access{index: "_id_"}, false, nil // there is no collection, so there is nothing to read
	}
	return access{}, false, c.unindexed(append(sortedKeys(held), key))
}

// chosen lets the server choose an index for a filter, and makes sure that there is one.
func (c *collection) chosen(ctx context.Context, filter bson.Document) (access, error) {
	plan, err := c.planOf(ctx, find{filter: filter})
	if err != nil {
		return access{}, err
	}
	if plan.scans() {
		return access{}, c.unindexed(wantedKeys(filter))
	}
	a := access{}
	if len(plan.indexes) == 1 {
		a.index = plan.indexes[0]
	}
	return a, nil
}

// unindexed refuses a delete that would read the whole collection.
func (c *collection) unindexed(keys []string) error {
	r := &Refusal{Reason: fmt.Sprintf("no index of %s leads to what is to go, so every delete would read the whole collection", c.Namespace)}
	if len(keys) > 0 {
		r.Index = createIndex(c.Namespace.Database, c.Namespace.Collection, keys)
	}
	return r
}

// createIndex is the shell's command that makes an index.
func createIndex(database, collection string, keys []string) string {
	var fields []string
	for _, k := range keys {
		fields = append(fields, fmt.Sprintf("%q: 1", k))
	}
	return fmt.Sprintf("db.getSiblingDB(%q).getCollection(%q).createIndex({%s})", database, collection, strings.Join(fields, ", "))
}

// queryPlan is what matters of an explanation.
type queryPlan struct {
	stages   []string
	indexes  []string // names, without repeats
	arrays   bool     // an index is multikey
	sorts    bool     // documents are put in order after they were read
	unbound  bool     // an index is read from its one end to the other
	returned int64    // with the figures of a run
	examined int64    // keys or documents, whichever are more; -1: there are no figures
}

// scans reports whether the plan reads a whole collection, by itself or by way of an index.
func (p *queryPlan) scans() bool { return slices.Contains(p.stages, "COLLSCAN") || p.unbound }

// planOf explains a find.
func (c *collection) planOf(ctx context.Context, f find) (*queryPlan, error) {
	reply, err := c.explain(ctx, c.Backend, f.body(c.Namespace.Collection), "queryPlanner")
	if err != nil {
		return nil, err
	}
	p := readPlan(reply)
	if len(p.stages) == 0 {
		return nil, &Refusal{Reason: fmt.Sprintf("the server does not tell by which plan it reads %s, so it may read the whole collection", c.Namespace)}
	}
	return p, nil
}

// measure runs a find for its figures.
func (c *collection) measure(ctx context.Context, f find) (*queryPlan, error) {
	reply, err := c.explain(ctx, c.Backend, f.body(c.Namespace.Collection), "executionStats")
	if err != nil {
		return nil, err
	}
	return readPlan(reply), nil
}

// readPlan reads an explanation of a mongod, a router or a gateway: wherever in its winning plan a stage stands.
func readPlan(reply bson.Document) *queryPlan {
	p := &queryPlan{examined: -1}
	planner, _ := bson.Get(reply, "queryPlanner")
	if winning, ok := bson.Get(planner.Data, "winningPlan"); ok {
		p.read(winning.Data)
	}
	if stats, ok := bson.Get(reply, "executionStats"); ok {
		p.returned = figure(stats.Data, "nReturned")
		p.examined = max(figure(stats.Data, "totalKeysExamined"), figure(stats.Data, "totalDocsExamined"))
	}
	return p
}

func figure(doc bson.Document, name string) int64 {
	v, _ := bson.Get(doc, name)
	n, _ := v.AsInt64OK()
	return n
}

// read takes a stage and all below it.
func (p *queryPlan) read(stage []byte) {
	for it := bson.Elements(stage); it.Next(); {
		v := it.Value()
		switch string(it.Key()) {
		case "stage":
			name, _ := v.StringValueOK()
			p.stages = append(p.stages, name)
			p.sorts = p.sorts || name == "SORT"
			if name == "IDHACK" {
				p.addIndex("_id_")
			}
		case "indexName":
			name, _ := v.StringValueOK()
			p.addIndex(name)
		case "isMultiKey":
			many, _ := v.BooleanOK()
			p.arrays = p.arrays || many
		case "indexBounds":
			p.unbound = p.unbound || wholeIndex(v.Data)
		case "rejectedPlans", "parsedQuery", "filter", "slotBasedPlan":
		default:
			if v.Type == bson.TypeDocument || v.Type == bson.TypeArray {
				p.read(v.Data)
			}
		}
	}
}

func (p *queryPlan) addIndex(name string) {
	if !slices.Contains(p.indexes, name) {
		p.indexes = append(p.indexes, name)
	}
}

// wholeIndex reports whether the bounds of an index's first key are from MinKey to MaxKey.
func wholeIndex(bounds []byte) bool {
	_, first, ok := bson.First(bounds)
	if !ok || first.Type != bson.TypeArray {
		return false
	}
	_, only, _ := bson.First(first.Data)
	text, _ := only.StringValueOK()
	return text == "[MinKey, MaxKey]" || text == "[MaxKey, MinKey]"
}

// keyIndex is an index that can give documents in the order of a key.
type keyIndex struct {
	name   string
	before []string // its keys before that one
	keys   int
}

// keyIndexes are the indexes that can give documents in the order of a key, the best first: those whose keys before it are held to one value each, and of
// those the ones with the most. An index that holds a part of the documents only, or in another order than that of the values, can't.
func keyIndexes(specs []bson.Document, key string, held map[string]bson.Value) []keyIndex {
	var found []keyIndex
	for _, spec := range specs {
		pattern, name, ok := plainIndex(spec)
		if !ok {
			continue
		}
		n := 0
		for n < len(pattern) && pattern[n] != key && held[pattern[n]].Type != 0 {
			n++
		}
		if n < len(pattern) && pattern[n] == key {
			found = append(found, keyIndex{name, pattern[:n], len(pattern)})
		}
	}
	slices.SortStableFunc(found, func(a, b keyIndex) int {
		return cmp.Or(len(b.before)-len(a.before), a.keys-b.keys)
	})
	return found
}

// heldFilter holds paths to their values.
func heldFilter(paths []string, held map[string]bson.Value) bson.Document {
	if len(paths) == 0 {
		return nil
	}
	b := bsoncore.NewDocumentBuilder()
	for _, p := range paths {
		b.StartDocument(p).AppendValue("$eq", held[p]).FinishDocument()
	}
	return bson.Document(b.Build())
}

// plainIndex returns the keys and the name of an index that holds every document that has a value, in the order of the values.
func plainIndex(spec bson.Document) (pattern []string, name string, ok bool) {
	for _, option := range []string{"partialFilterExpression", "collation"} {
		if _, has := bson.Get(spec, option); has {
			return nil, "", false
		}
	}
	if hidden, _ := bson.Get(spec, "hidden"); hidden.Type == bson.TypeBoolean && hidden.Boolean() {
		return nil, "", false
	}
	keys, _ := bson.Get(spec, "key")
	for it := bson.Elements(keys.Data); it.Next(); {
		if !bson.IsNumber(it.Value().Type) { // hashed, text, 2dsphere
			return nil, "", false
		}
		pattern = append(pattern, string(it.Key()))
	}
	v, _ := bson.Get(spec, "name")
	name, ok = v.StringValueOK()
	return pattern, name, ok && len(pattern) > 0
}

// equalities are the paths that a filter holds to one value each.
func equalities(filter bson.Document) map[string]bson.Value {
	held := make(map[string]bson.Value)
	for _, n := range conjuncts(filter) {
		if c, ok := n.(*query.Compare); ok && c.Op == query.Eq {
			held[c.Path.String()] = c.Value
		}
	}
	return held
}

// conjuncts are the predicates that all have to hold.
func conjuncts(filter bson.Document) []query.Node {
	f, err := query.ParseFilter(filter, query.Env{})
	if err != nil {
		return nil
	}
	var list []query.Node
	var add func(n query.Node)
	add = func(n query.Node) {
		if and, ok := n.(*query.And); ok {
			for _, one := range and.Of {
				add(one)
			}
			return
		}
		list = append(list, n)
	}
	if root := f.Root(); root != nil {
		add(root)
	}
	return list
}

// wantedKeys are the keys of the index that a filter wants: what it holds to one value, then what it compares otherwise
// (https://www.mongodb.com/docs/manual/tutorial/equality-sort-range-guideline/).
func wantedKeys(filter bson.Document) []string {
	held := equalities(filter)
	keys := sortedKeys(held)
	for _, n := range conjuncts(filter) {
		var path string
		switch n := n.(type) {
		case *query.Compare:
			path = n.Path.String()
		case *query.In:
			path = n.Path.String()
		case *query.Type:
			path = n.Path.String()
		case *query.Exists:
			path = n.Path.String()
		}
		if path != "" && !slices.Contains(keys, path) {
			keys = append(keys, path)
		}
	}
	return keys
}

func sortedKeys(set map[string]bson.Value) []string {
	var keys []string
	for k := range set {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// noArrays is a filter for values that are no arrays.
func noArrays(path string) bson.Document {
	return bson.Document(bsoncore.NewDocumentBuilder().StartDocument(path).StartDocument("$not").AppendString("$type", "array").
		FinishDocument().FinishDocument().Build())
}
