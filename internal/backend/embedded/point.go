package embedded

import (
	"strings"

	"oxbow/internal/bson"
	"oxbow/internal/engine"
)

// point is a find of one document by its _id, of which nothing else matters.
type point struct {
	table engine.Name
	id    bson.Value
}

// pointFields tells the fields of a point that have been seen.
type pointFields uint8

const (
	pointFilter pointFields = 1 << iota
	pointDatabase
	pointLimit
	pointSingleBatch
	pointBatchSize
	pointSession
	pointClusterTime

	neededByPoint = pointFilter | pointDatabase
)

// parsePoint recognises what drivers send for findOne({_id: value}), the find that is asked most, in one pass and without allocating a whole
// Find. Whatever it does not recognise is for statement.ParseFind to read, bad input too.
func parsePoint(body bson.Document) (p point, ok bool) {
	it := bson.Elements(body)
	if !it.Next() {
		return p, false
	}
	if p.table.Collection, ok = it.Value().StringValueOK(); !ok {
		return p, false
	}
	var seen pointFields
	for it.Next() {
		field := p.take(it.Key(), it.Value())
		if field == 0 || seen&field != 0 {
			return p, false
		}
		seen |= field
	}
	return p, it.Err() == nil && seen&neededByPoint == neededByPoint
}

// take takes a field of the type that drivers send, and returns 0 for any other.
func (p *point) take(key []byte, v bson.Value) pointFields {
	switch {
	case string(key) == "filter" && v.Type == bson.TypeDocument:
		id, ok := onlyID(v.Data)
		if p.id = id; ok {
			return pointFilter
		}
	case string(key) == "$db" && v.Type == bson.TypeString:
		p.table.Database = v.StringValue()
		return pointDatabase
	case string(key) == "limit" && isPositive(v):
		return pointLimit
	case string(key) == "singleBatch" && v.Type == bson.TypeBoolean:
		return pointSingleBatch
	case string(key) == "batchSize" && isPositive(v):
		return pointBatchSize
	case string(key) == "lsid" && v.Type == bson.TypeDocument:
		return pointSession
	case string(key) == "$clusterTime" && v.Type == bson.TypeDocument:
		return pointClusterTime
	}
	return 0
}

func isPositive(v bson.Value) bool {
	return (v.Type == bson.TypeInt32 || v.Type == bson.TypeInt64) && v.AsInt64() > 0
}

// onlyID returns the _id of a filter {_id: value} that asks for one value.
func onlyID(filter bson.Document) (bson.Value, bool) {
	it := bson.Elements(filter)
	if !it.Next() || string(it.Key()) != "_id" {
		return bson.Value{}, false
	}
	id := it.Value()
	if it.Next() || it.Err() != nil {
		return bson.Value{}, false
	}
	switch id.Type {
	case bson.TypeObjectID, bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128, bson.TypeString,
		bson.TypeBinary, bson.TypeDateTime, bson.TypeBoolean:
		return id, true
	case bson.TypeDocument:
		key, _, any := bson.First(id.Data)
		return id, !any || !strings.HasPrefix(key, "$")
	}
	return bson.Value{}, false
}
