package engine

import (
	"fmt"
	"slices"
	"strings"

	"oxbow/internal/query"
)

// planner chooses the plan of one query from what a table has.
type planner struct {
	namespace string   // for errors
	documents []byte   // prefix of the documents' keys
	indexes   []*index // those that readers may use
	count     int64    // documents in the table
	// probe counts the keys of a scan, limit of them at most, and reports whether that was all. Nil: no probing.
	probe     func(s *scan, limit int) (keys int, all bool)
	explained bool // keep the plans that are not chosen
}

// Limits of the search for a plan.
const (
	maxAlternatives = 64  // scans of one $or, or of the lists that a merge is made of
	probeKeys       = 128 // keys read of each index before the choice between indexes that bounds don't decide
	maxProbed       = 6   // indexes probed
)

// option is one way to answer a query.
type option struct {
	scans   []scan
	decided bool // keys alone decide the filter
	ordered bool // in the order asked
	merge   bool // by merging the scans
	narrow  int  // fields held to points, from the first on
	bounded int  // fields with bounds at all
	conds   []int
	unique  bool // one document at most
	present bool // see indexBounds
	cost    float64
}

// idKeys are the keys of the documents themselves.
var idKeys = idIndex.Keys

// plan answers q, whose hint and bounds are those of the table.
func (p *planner) plan(q *Query) (*plan, error) {
	out := &plan{filter: q.Filter, skip: q.Skip, limit: q.Limit}
	if q.Sort != nil && len(q.Sort.Keys) > 0 {
		out.sort = q.Sort
	}
	var root query.Node
	if q.Filter != nil {
		root = q.Filter.Root()
	}
	conds := conjuncts(root)
	if len(conds) == 0 {
		out.filter = nil
	}
	if q.Min != nil || q.Max != nil {
		return out, p.planBetween(out, q, conds)
	}
	natural, hinted, err := p.hint(q)
	switch {
	case err != nil:
		return nil, err
	case natural != 0:
		out.take(p.collectionScan(natural < 0, out.sort, conds), "natural order was asked for")
		return out, nil
	case hinted != nil:
		out.take(*p.option(*hinted, conds, out.sort, true), "of the hint")
		return out, nil
	}
	if q.distinct != "" && p.chooseDistinct(out, q.distinct, conds) {
		return out, nil
	}
	p.choose(out, conds)
	return out, nil
}

// chooseDistinct takes an index that gives the values of a path one after the other, if there is one.
func (p *planner) chooseDistinct(out *plan, path string, conds []conjunct) bool {
	for _, ix := range p.indexes {
		if ix.Hidden || ix.Keys[0].Path.String() != path || ix.partial != nil && !implies(conds, ix.partial.Root()) {
			continue
		}
		o := p.option(sourceOf(ix), conds, nil, true)
		// A sparse compound index leaves out none of the path's values.
		if o.decided && (!ix.Sparse || len(conds) == 0 || o.present) && len(o.scans) == 1 && o.scans[0].gives(path) {
			out.take(*o, ix.Name+" gives the values of "+path)
			return true
		}
	}
	return false
}

// take makes o the plan.
func (out *plan) take(o option, reason string) {
	out.scans, out.reason = o.scans, reason
	if slices.ContainsFunc(o.scans, func(s scan) bool { return len(s.ranges) == 0 }) && len(o.scans) == 1 {
		out.reason = "no key of " + o.name() + " can lie within the bounds"
	}
	if o.decided {
		out.filter = nil
	}
	if o.ordered {
		if o.merge {
			out.merge = out.sort
		}
		out.sort = nil
	}
	out.scans = slices.DeleteFunc(o.scans, func(s scan) bool { return len(s.ranges) == 0 })
	if len(out.scans) < 2 {
		out.merge = nil
	}
}

// choose picks the best of all options.
func (p *planner) choose(out *plan, conds []conjunct) {
	byID := p.option(source{name: idIndexName, keys: idKeys, prefix: p.documents}, conds, out.sort, false)
	if byID != nil && byID.unique {
		out.id = true
		out.take(*byID, "one _id")
		return
	}
	var options []option
	if byID != nil {
		options = append(options, *byID)
	}
	for _, ix := range p.indexes {
		if ix.Hidden || ix.partial != nil && !implies(conds, ix.partial.Root()) {
			continue
		}
		if o := p.option(sourceOf(ix), conds, out.sort, false); o != nil {
			options = append(options, *o)
		}
	}
	if !slices.ContainsFunc(options, func(o option) bool { return o.unique }) {
		options = append(options, p.alternatives(conds, options, out.sort)...)
	}
	if len(options) == 0 {
		out.take(p.collectionScan(false, out.sort, conds), "no index has bounds for the filter or gives the sort")
		return
	}
	best, reason := p.best(options, out)
	if p.explained {
		out.rejected = out.others(options, best)
	}
	out.take(options[best], reason)
}

// others are the plans of the options that were not chosen. out is the plan before it takes the one that was.
func (out *plan) others(options []option, chosen int) []*plan {
	var rejected []*plan
	for i := range options {
		if i != chosen {
			other := *out
			other.take(options[i], "")
			rejected = append(rejected, &other)
		}
	}
	return rejected
}

// collectionScan reads all documents in the order of their _id.
func (p *planner) collectionScan(backward bool, order *query.Sort, conds []conjunct) option {
	b := boundsOf(idKeys, 0, nil)
	o := option{decided: len(conds) == 0}
	if order != nil {
		if reverse, ok := b.gives(idKeys, order, false); ok {
			o.ordered = reverse == backward
		}
	}
	o.scans = []scan{newScan(nil, "", p.documents, idKeys, b, backward)}
	return o
}

// source is an index to read: a real one, or the documents as the index of their _id.
type source struct {
	index  *index
	name   string
	keys   []IndexKey
	prefix []byte
	arrays uint32
	unique bool
	sparse bool
}

func sourceOf(ix *index) source {
	return source{ix, ix.Name, ix.Keys, ix.prefix, ix.flags.arrays.Load(), ix.Unique, ix.Sparse}
}

// option returns the best way to use one index, or nil if it has neither bounds nor order to give. A hint forces it.
func (p *planner) option(s source, conds []conjunct, order *query.Sort, forced bool) *option {
	b := boundsOf(s.keys, s.arrays, conds)
	if s.sparse && !b.present && !forced {
		return nil
	}
	o := &option{decided: b.all(), present: b.present}
	o.measure(&b)
	if slices.ContainsFunc(b.fields, func(f fieldBounds) bool { return len(f.in) == 0 }) {
		o.ordered, o.unique = true, true
		o.scans = []scan{{index: s.index, name: s.name, keys: s.keys, bounds: b}}
		return o
	}
	backward, ordered := false, order == nil
	lists := false
	if order != nil {
		backward, ordered = b.gives(s.keys, order, false)
		if !ordered && b.combinations() <= maxAlternatives {
			backward, ordered = b.gives(s.keys, order, true)
			lists = ordered
		}
	}
	exists := s.sparse && b.present // all that a sparse index holds, which may be little
	if !forced && b.fields[0].in.full() && !exists && (order == nil || !ordered) {
		return nil
	}
	o.ordered = ordered
	o.unique = (s.unique || s.index == nil) && s.arrays == 0 && o.narrow == len(s.keys) && b.combinations() == 1 &&
		(!s.sparse || b.present)
	if lists {
		o.merge = true
		for _, one := range b.apart(s.keys, order) {
			o.scans = append(o.scans, newScan(s.index, s.name, s.prefix, s.keys, one, backward))
		}
		return o
	}
	o.scans = []scan{newScan(s.index, s.name, s.prefix, s.keys, b, backward)}
	return o
}

// measure counts the fields that bounds narrow.
func (o *option) measure(b *indexBounds) {
	leading := true
	for i := range b.fields {
		in := b.fields[i].in
		if !in.full() {
			o.bounded++
		}
		if leading = leading && in.points(); leading {
			o.narrow++
		}
	}
	for i := range b.fields {
		for _, u := range b.fields[i].used {
			if !slices.Contains(o.conds, u) {
				o.conds = append(o.conds, u)
			}
		}
	}
}

// combinations counts the values that the leading fields held to points can have together.
func (b *indexBounds) combinations() int {
	n := 1
	for i := range b.fields {
		if !b.fields[i].in.points() || n > maxRanges {
			break
		}
		n *= len(b.fields[i].in)
	}
	return n
}

// apart splits bounds with lists of points in the fields before the sort's into one with a single point each.
func (b *indexBounds) apart(keys []IndexKey, order *query.Sort) []indexBounds {
	out := []indexBounds{*b}
	for i := range keys {
		path := keys[i].Path.String()
		if !b.held(path) && slices.ContainsFunc(order.Keys, func(k query.SortKey) bool { return k.Path.String() == path }) {
			break
		}
		var next []indexBounds
		for _, o := range out {
			for _, point := range o.fields[i].in {
				one := o
				one.fields = slices.Clone(o.fields)
				one.fields[i].in = intervals{point}
				next = append(next, one)
			}
		}
		out = next
	}
	return out
}

// alternatives plans each top-level $or that gives no option bounds as one scan a branch, bounded by the branch and by the conditions beside it.
func (p *planner) alternatives(conds []conjunct, options []option, order *query.Sort) []option {
	var out []option
	for n, c := range conds {
		or, ok := c.node.(*query.Or)
		used := slices.ContainsFunc(options, func(o option) bool { return slices.Contains(o.conds, n) })
		if !ok || used || c.prefix != "" || len(or.Of) > maxAlternatives {
			continue
		}
		rest := slices.Delete(slices.Clone(conds), n, n+1)
		if o, ok := p.union(or, rest, order); ok {
			out = append(out, o)
		}
	}
	return out
}

func (p *planner) union(or *query.Or, rest []conjunct, order *query.Sort) (option, bool) {
	out := option{ordered: true, merge: order != nil}
	for _, branch := range or.Of {
		best := p.branch(slices.Concat(conjuncts(branch), rest), order)
		if best == nil {
			return option{}, false
		}
		out.scans = append(out.scans, best.scans...)
		out.ordered = out.ordered && best.ordered
	}
	if !out.ordered && order != nil {
		out.merge = false
	}
	out.narrow = 1
	return out, len(out.scans) > 0
}

// branch returns the best bounded option for one branch of an $or.
func (p *planner) branch(conds []conjunct, order *query.Sort) *option {
	sources := []source{{name: idIndexName, keys: idKeys, prefix: p.documents}}
	for _, ix := range p.indexes {
		if !ix.Hidden && (ix.partial == nil || implies(conds, ix.partial.Root())) {
			sources = append(sources, sourceOf(ix))
		}
	}
	var best *option
	for _, s := range sources {
		o := p.option(s, conds, order, false)
		if o == nil || o.scans[0].bounds.fields[0].in.full() {
			continue
		}
		if best == nil || o.before(best) {
			best = o
		}
	}
	return best
}

// before ranks options by their bounds alone.
func (o *option) before(than *option) bool {
	switch {
	case o.unique != than.unique:
		return o.unique
	case o.ordered != than.ordered:
		return o.ordered
	case o.narrow != than.narrow:
		return o.narrow > than.narrow
	case o.bounded != than.bounded:
		return o.bounded > than.bounded
	}
	return o.decided && !than.decided
}

// best returns the option to take and why.
func (p *planner) best(options []option, out *plan) (int, string) {
	if len(options) == 1 {
		return 0, "no index but " + options[0].name() + " serves the query"
	}
	for i := range options {
		if options[i].unique {
			return i, options[i].name() + " is unique and has a value for each field"
		}
	}
	for i := range options {
		if dominates(options, i) {
			return i, options[i].name() + " bounds all that the other indexes bound" + orderNote(&options[i], out)
		}
	}
	return p.cheapest(options, out)
}

// dominates reports whether option i uses all conditions that any other uses, narrows at least as many fields and gives the sort if any does.
func dominates(options []option, i int) bool {
	o := &options[i]
	for j := range options {
		other := &options[j]
		if i == j {
			continue
		}
		if other.ordered && !o.ordered || o.narrow < other.narrow || len(o.scans) > 1 && !o.merge || len(other.scans) > 1 && !other.merge {
			return false
		}
		for _, c := range other.conds {
			if !slices.Contains(o.conds, c) {
				return false
			}
		}
		if len(o.conds) == len(other.conds) && j < i && o.narrow == other.narrow && o.ordered == other.ordered {
			return false
		}
		if o.narrow == other.narrow && o.scans[0].bounds.fields[0].path != other.scans[0].bounds.fields[0].path {
			return false
		}
	}
	return true
}

func orderNote(o *option, out *plan) string {
	if out.sort != nil && o.ordered {
		return " and gives the sort"
	}
	return ""
}

// name names the indexes of an option.
func (o *option) name() string {
	var names []string
	for i := range o.scans {
		if n := o.scans[i].name; !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return strings.Join(names, ", ")
}

// cheapest compares options by a guess at the keys and documents that each will read.
func (p *planner) cheapest(options []option, out *plan) (int, string) {
	keys := make([]float64, len(options))
	notes := make([]string, len(options))
	results := float64(p.count)
	for i := range options {
		keys[i], notes[i] = p.expectedKeys(&options[i], i < maxProbed)
		results = min(results, keys[i])
	}
	best := 0
	for i := range options {
		o := &options[i]
		reads := keys[i]
		if out.sort == nil || o.ordered {
			if want := float64(out.keep()); want > 0 && results > 0 {
				reads = min(reads, want*keys[i]/results)
			}
			o.cost = 5 * reads
		} else {
			o.cost = 7 * reads
		}
		if o.cost < options[best].cost || o.cost == options[best].cost && o.before(&options[best]) {
			best = i
		}
	}
	return best, fmt.Sprintf("%s promises the least reading (%s)%s", options[best].name(), strings.Join(notes, ", "), orderNote(&options[best], out))
}

// expectedKeys guesses how many keys an option's scans hold: counted where a probe reaches the end, else a share of the table by the kind of
// bounds.
func (p *planner) expectedKeys(o *option, probe bool) (float64, string) {
	total, all := 0.0, true
	for i := range o.scans {
		s := &o.scans[i]
		guess := p.guess(s)
		if probe && p.probe != nil {
			n, complete := p.probe(s, probeKeys)
			if complete {
				total += float64(n)
				continue
			}
			guess = max(guess, float64(n))
		}
		total, all = total+guess, false
	}
	if all {
		return total, fmt.Sprintf("%s %.0f keys", o.name(), total)
	}
	return total, fmt.Sprintf("%s about %.0f", o.name(), total)
}

// guess takes a point for a hundredth of the keys, a closed range for a tenth and one with one end for a third.
func (p *planner) guess(s *scan) float64 {
	share := 1.0
	for i := range s.bounds.fields {
		in := s.bounds.fields[i].in
		switch w := width(in); {
		case in.full():
		case in.points():
			share *= min(1, float64(len(in))/100)
		case w >= 1<<20:
			share /= 3
		default:
			share /= 10
		}
	}
	return max(1, share*float64(p.count))
}
