package embedded

import (
	"oxbow/internal/bson"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// bareCount is a pipeline's last stage where all it does is count: {$count: name}, or a $group of a constant with one
// {$sum: 1}, as drivers send for countDocuments.
type bareCount struct {
	field string
	group bool
	id    bson.Value // with group
}

// parseBareCount returns the last stage of a pipeline as a bare count, or nil if it is none.
func parseBareCount(stages bson.Array) *bareCount {
	var last bson.Value
	it := bson.Elements(stages)
	for it.Next() {
		last = it.Value()
	}
	name, arg, ok := bson.First(last.Data)
	switch {
	case !ok:
		return nil
	case name == "$count":
		if field, ok := arg.StringValueOK(); ok {
			return &bareCount{field: field}
		}
	case name == "$group" && arg.Type == bson.TypeDocument:
		return parseGroupCount(arg.Data)
	}
	return nil
}

func parseGroupCount(spec bson.Document) *bareCount {
	c := &bareCount{group: true}
	it := bson.Elements(spec)
	for it.Next() {
		v := it.Value()
		switch {
		case string(it.Key()) == "_id" && isPlainConstant(v):
			c.id = v
		case c.field == "" && isSumOfOne(v):
			c.field = string(it.Key())
		default:
			return nil
		}
	}
	if c.field == "" || c.id.Type == 0 {
		return nil
	}
	return c
}

// isPlainConstant tells constants that need no evaluation.
func isPlainConstant(v bson.Value) bool {
	switch v.Type {
	case bson.TypeNull, bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeBoolean:
		return true
	}
	return false
}

// isSumOfOne tells {$sum: 1} with an int: a double or a long 1 would give a sum of another type.
func isSumOfOne(v bson.Value) bool {
	if v.Type != bson.TypeDocument {
		return false
	}
	it := bson.Elements(v.Data)
	if !it.Next() || string(it.Key()) != "$sum" || it.Value().Type != bson.TypeInt32 || it.Value().Int32() != 1 {
		return false
	}
	return !it.Next()
}

// document is the stage's one result for n documents.
func (c *bareCount) document(n int64) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	if c.group {
		dst = bsoncore.AppendValueElement(dst, "_id", c.id)
	}
	dst = appendNumber(dst, c.field, n)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
