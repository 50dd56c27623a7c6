package query

import (
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// CheckID refuses values that no document can have as its _id: arrays, regular expressions, undefined, and documents whose fields start with $
// (https://www.mongodb.com/docs/manual/core/document/#the-_id-field). The errors are InvalidIDField and DollarPrefixedFieldName.
func CheckID(id bson.Value) error {
	switch id.Type {
	case bson.TypeArray, bson.TypeRegex, bson.TypeUndefined:
		return mongoerr.New(mongoerr.InvalidIDField, "The '_id' value cannot be of type %s", bson.TypeName(id.Type))
	case bson.TypeDocument:
		it := bson.Elements(id.Data)
		for it.Next() {
			if key := it.Key(); len(key) > 0 && key[0] == '$' {
				return mongoerr.New(mongoerr.DollarPrefixedFieldName, "_id fields may not contain '$'-prefixed fields: %s is not valid for storage.", key)
			}
		}
	}
	return nil
}

// FixedID returns the _id that every document a filter matches has, where the filter tells it, and whether it asks for nothing else. A nil filter fixes
// none.
func FixedID(f *Filter) (id bson.Value, only, ok bool) {
	if f == nil {
		return bson.Value{}, false, false
	}
	conjuncts := []Node{f.Root()}
	if and, ok := conjuncts[0].(*And); ok {
		conjuncts = and.Of
	}
	for _, n := range conjuncts {
		if c, ok := n.(*Compare); ok && c.Op == Eq && c.Path.String() == "_id" && CheckID(c.Value) == nil {
			return c.Value, len(conjuncts) == 1, true
		}
	}
	return bson.Value{}, false, false
}
