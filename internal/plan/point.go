package plan

import (
	"oxbow/internal/bson"
	"oxbow/internal/query"
	"oxbow/internal/statement"
)

// point returns the only target of a filter of plain values that pin every field of the layout. Such filters are most of what clients send, and neither
// they nor what comes with them has to be compiled here: the target's backend does that, and what it says of it goes to the client.
func (s Source) point(filter bson.Document) (Target, bool) {
	if s.Collection == nil {
		return Target{}, false
	}
	place, ok := s.Collection.Table.Point(filter)
	if !ok {
		return Target{}, false
	}
	return s.target(place.Partition), true
}

// pointOfUpdate is point for a statement that leaves the fields of the layout alone.
func (s Source) pointOfUpdate(u *statement.UpdateOne) (Target, bool) {
	if s.Collection == nil || u.Constants != nil || u.ArrayFilters != nil {
		return Target{}, false
	}
	layout := &s.Collection.Table.Layout
	if layout.Time != nil && !query.SurelyLeaves(u.Update, layout.Time.Field) || layout.Hash != nil && !query.SurelyLeaves(u.Update, layout.Hash.Field) {
		return Target{}, false
	}
	return s.point(u.Filter)
}

// pointFind is the plan of a find whose filter has a point, without a sort.
func pointFind(f *statement.Find, src Source, t Target) *Find {
	table := &src.Collection.Table
	whole := &struct { // one allocation for what belongs together
		Find
		groups  [1][]Target
		targets [1]Target
	}{targets: [1]Target{t}}
	whole.Find = Find{
		Source: src, Routed: Routed{Targets: whole.targets[:], Of: len(table.Partitions), point: f.Filter, table: table},
		Groups: whole.groups[:], Command: findCommand(f), AllowPartial: f.AllowPartialResults,
	}
	whole.groups[0] = whole.targets[:]
	whole.hand(f)
	return &whole.Find
}
