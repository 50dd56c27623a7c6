package plan

import (
	"math"

	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
	"oxbow/internal/route"
	"oxbow/internal/statement"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Find is the plan of a find, and the reading half of an aggregation.
//
// Groups follow one another; the targets of a group are merged by Sort, or follow one another where there is no sort. A sort that
// begins with a time layout's field makes a group of each time range: ranges are disjoint, so one range is read after the other and a limit
// ends the work early.
type Find struct {
	Source     Source
	Routed     Routed
	Groups     [][]Target
	Command    Command
	Sort       *query.Sort       // nil: no order between targets
	Skip       int64             // applied to the merged stream
	Limit      int64             // applied to the merged stream; 0: none
	Projection *query.Projection // applied to the merged stream; nil where the targets do it
	BatchSize  int64             // asked of each target; 0: the backend's own choice
	// AllowPartial: targets whose backend can't be reached may be left out.
	AllowPartial bool
}

// NewFind plans a find.
func NewFind(f *statement.Find, src Source, env query.Env) (*Find, error) {
	if t, ok := src.point(f.Filter); ok && len(f.Sort) <= len(emptyDocument) {
		return pointFind(f, src, t), nil
	}
	filter, err := query.ParseFilter(f.Filter, env)
	if err != nil {
		return nil, err
	}
	order, natural, err := query.ParseSort(f.Sort)
	if err != nil {
		return nil, err
	}
	projection, err := query.ParseProjection(f.Projection, filter, env)
	if err != nil {
		return nil, err
	}
	r, routed := src.route(filter)
	p := &Find{Source: src, Routed: routed, Skip: f.Skip, Limit: f.Limit, Command: findCommand(f), AllowPartial: f.AllowPartialResults}
	if order != nil && len(order.Keys) > 0 {
		p.Sort = order
	}
	p.Groups = groups(src, r, routed.Targets, p.Sort, natural)
	if len(routed.Targets) == 1 {
		p.hand(f)
		return p, nil
	}
	return p, p.share(f, projection)
}

// hand gives the whole work to the only target.
func (p *Find) hand(f *statement.Find) {
	p.Skip, p.Limit, p.Sort = 0, 0, nil
	dst := appendDocument(p.Command.Rest, "projection", f.Projection)
	if f.Skip > 0 {
		dst = bsoncore.AppendInt64Element(dst, "skip", f.Skip)
	}
	if f.Limit > 0 {
		dst = bsoncore.AppendInt64Element(dst, "limit", f.Limit)
	}
	p.Command.Rest = dst
}

// share lets each target give what may be among the result's skip + limit first documents.
func (p *Find) share(f *statement.Find, projection *query.Projection) error {
	if p.Limit > 0 {
		if p.Skip > math.MaxInt64-p.Limit {
			return mongoerr.New(mongoerr.BadValue, "sum of limit and skip cannot be represented as a 64-bit integer, limit: %d, skip: %d",
				p.Limit, p.Skip)
		}
		p.Command.Rest = bsoncore.AppendInt64Element(p.Command.Rest, "limit", p.Skip+p.Limit)
	}
	switch {
	case projection.Whole():
	case p.Sort == nil:
		p.Command.Rest = appendDocument(p.Command.Rest, "projection", f.Projection)
	default:
		// The merge needs the sort's fields, which the projection may drop.
		p.Projection = projection
	}
	p.BatchSize = shareOfBatch(p.Groups)
	return nil
}

// shareOfBatch bounds what a merge holds: about two thousand documents in all, at least 16 a target.
func shareOfBatch(groups [][]Target) int64 {
	widest := 1
	for _, g := range groups {
		widest = max(widest, len(g))
	}
	if widest == 1 {
		return 0
	}
	return int64(max(16, 2000/widest))
}

// findRoom is what the fields of a usual find need beside its documents, in bytes.
const findRoom = 128

// findCommand returns what every target gets, however many there are.
func findCommand(f *statement.Find) Command {
	dst := appendDocument(make([]byte, 0, len(f.Filter)+len(f.Sort)+len(f.Projection)+findRoom), "filter", f.Filter)
	dst = appendDocument(dst, "sort", f.Sort)
	dst = appendValue(dst, "hint", f.Hint)
	dst = appendDocument(dst, "min", f.Min)
	dst = appendDocument(dst, "max", f.Max)
	dst = appendDocument(dst, "let", f.Let)
	dst = appendReading(dst, &f.Generic)
	if f.NoCursorTimeout {
		dst = bsoncore.AppendBooleanElement(dst, "noCursorTimeout", true)
	}
	return Command{Name: "find", Rest: dst}
}

// appendReading appends the generic fields that a read carries to its targets. maxTimeMS is not among them: the executor's deadline covers all targets.
func appendReading(dst []byte, g *statement.Generic) []byte {
	dst = appendValue(dst, "comment", g.Comment)
	dst = appendDocument(dst, "readConcern", g.ReadConcern)
	return appendValue(dst, "$readPreference", g.ReadPreference)
}

// groups arranges targets: all in one group to be merged under a sort, time range by time range where that is the sort's order, one after the other
// without a sort.
func groups(src Source, r route.Route, targets []Target, order *query.Sort, natural int) [][]Target {
	if len(targets) <= 1 {
		return [][]Target{targets}
	}
	if order == nil {
		out := make([][]Target, len(targets))
		for i, t := range targets {
			if natural < 0 {
				i = len(targets) - 1 - i
			}
			out[i] = []Target{t}
		}
		return out
	}
	by := src.Collection.Table.Layout.Time
	if by == nil || order.Keys[0].Path.String() != by.Field.String() {
		return [][]Target{targets}
	}
	return ranges(src.Collection.Table.Partitions, r, targets, order.Keys[0].Desc)
}

// ranges makes a group of each time range, in the direction of the sort.
func ranges(partitions []route.Partition, r route.Route, targets []Target, desc bool) [][]Target {
	var out [][]Target
	for i, t := range targets {
		if i == 0 || partitions[r.Partitions[i]].Start != partitions[r.Partitions[i-1]].Start {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], t)
	}
	if desc {
		for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
			out[i], out[j] = out[j], out[i]
		}
	}
	return out
}
