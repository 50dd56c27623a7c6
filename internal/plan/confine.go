package plan

import (
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
	"oxbow/internal/route"
)

// confine looks at what an update does to the fields of the layout. An update that leaves them alone goes to the whole route. One that sets
// them to constants stays in the partitions where documents with these constants belong, and is guarded against documents
// elsewhere, which would have to move. One whose values are not known beforehand is refused, as MongoDB refuses a change of a shard key
// (https://www.mongodb.com/docs/manual/core/sharding-change-shard-key-value/).
func confine(src Source, u *query.Update, filter bson.Document, r route.Route, routed Routed) (stay Routed, guard *Guard, err error) {
	layout := &src.Collection.Table.Layout
	cell, slot := anyCell, anySlot
	var field bson.Path
	if layout.Time != nil {
		v, touched, err := constant(u, layout.Time.Field)
		if err != nil {
			return routed, nil, err
		}
		if touched && v.Type == 0 {
			return routed, nil, mongoerr.New(mongoerr.ShardKeyNotFound,
				"the update would leave the document without the field '%s', which the collection is split by", layout.Time.Field)
		}
		if touched {
			field = layout.Time.Field
			ms, err := layout.Time.Instant(v)
			if err != nil {
				return routed, nil, err
			}
			cell = func(p *route.Partition) bool { return p.Start <= ms && ms < p.End }
		}
	}
	if layout.Hash != nil {
		v, touched, err := constant(u, layout.Hash.Field)
		if err != nil {
			return routed, nil, err
		}
		if touched {
			field = layout.Hash.Field
			want, err := layout.Hash.Slot(v)
			if err != nil {
				return routed, nil, err
			}
			slot = func(p *route.Partition) bool { return p.Slot == want }
		}
	}
	stay = routed
	if field.String() == "" {
		return stay, nil, nil // it touches none
	}
	stay.Targets = nil
	var elsewhere []Target
	for i, t := range routed.Targets {
		p := &src.Collection.Table.Partitions[r.Partitions[i]]
		if cell(p) && slot(p) {
			stay.Targets = append(stay.Targets, t)
		} else {
			elsewhere = append(elsewhere, t)
		}
	}
	if len(elsewhere) == 0 {
		return stay, nil, nil
	}
	return stay, &Guard{Filter: filter, Elsewhere: elsewhere, Err: wouldMove(field)}, nil
}

func anyCell(*route.Partition) bool { return true }

func anySlot(*route.Partition) bool { return true }

// constant returns the value that an update leaves at a layout's field, and whether it touches it.
func constant(u *query.Update, field bson.Path) (bson.Value, bool, error) {
	touches, v, known := u.Touches(field)
	if touches && !known {
		return v, true, wouldMove(field)
	}
	return v, touches, nil
}

func wouldMove(field bson.Path) *mongoerr.Error {
	return mongoerr.New(mongoerr.ImmutableField,
		"Performing an update on the path '%s' would modify the immutable field '%s': the collection is split by it and the document would have to move to another partition",
		field, field)
}
