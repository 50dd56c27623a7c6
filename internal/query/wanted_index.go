package query

import (
	"slices"
	"strconv"
	"strings"

	"oxbow/internal/bson"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// wantedFields bounds the fields of a wanted index: the first few find documents, more make the index larger.
const wantedFields = 4

// WantedIndexes returns the keys of the indexes that a filter and a sort, either of which may be nil, want: one as a rule, one a branch of an $or that
// nothing beside it narrows, none where no index helps. Fields stand in the order that MongoDB's manual advises: those that are compared for
// equality, those of the sort, then one that has a range (https://www.mongodb.com/docs/manual/tutorial/equality-sort-range-rule/).
func WantedIndexes(filter, sort bson.Document) []bson.Document {
	var w wanted
	w.read(filter, "")
	if key := w.key(sort); key != nil {
		return []bson.Document{key}
	}
	var keys []bson.Document
	for _, branch := range w.branches {
		for _, key := range WantedIndexes(branch, sort) {
			if !slices.ContainsFunc(keys, func(k bson.Document) bool { return string(k) == string(key) }) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// wanted is what a filter asks of fields, by how well an index serves it.
type wanted struct {
	equal, ranges, weak []string
	geo                 string
	branches            []bson.Document // of the first $or
}

func (w *wanted) read(filter bson.Document, prefix string) {
	it := bson.Elements(filter)
	for len(filter) > 0 && it.Next() {
		name, v := string(it.Key()), it.Value()
		switch {
		case name == "$and":
			for all := bson.Elements(v.Data); v.Type == bson.TypeArray && all.Next(); {
				if doc, ok := all.Value().DocumentOK(); ok {
					w.read(doc, prefix)
				}
			}
		case name == "$or":
			if w.branches == nil {
				w.branches = branches(v)
			}
		case strings.HasPrefix(name, "$"):
		default:
			w.field(prefix+name, v)
		}
	}
}

// branches are the filters of an $or.
func branches(v bson.Value) []bson.Document {
	var list []bson.Document
	for all := bson.Elements(v.Data); v.Type == bson.TypeArray && all.Next(); {
		if doc, ok := all.Value().DocumentOK(); ok {
			list = append(list, doc)
		}
	}
	return list
}

func (w *wanted) field(path string, v bson.Value) {
	doc, ok := v.DocumentOK()
	first, _, _ := bson.First(doc)
	if v.Type == bson.TypeRegex {
		w.ranges = append(w.ranges, path)
		return
	}
	if !ok || !strings.HasPrefix(first, "$") {
		w.equal = append(w.equal, path)
		return
	}
	it := bson.Elements(doc)
	for it.Next() {
		switch string(it.Key()) {
		case "$eq", "$in", "$all":
			w.equal = append(w.equal, path)
		case "$gt", "$gte", "$lt", "$lte", "$regex", "$mod", "$type", "$size":
			w.ranges = append(w.ranges, path)
		case "$ne", "$nin", "$not", "$exists":
			w.weak = append(w.weak, path)
		case "$elemMatch":
			w.elements(path, it.Value())
		case "$near", "$nearSphere", "$geoWithin", "$geoIntersects":
			w.geo = path
		}
	}
}

// elements reads an $elemMatch, whose fields lie below the array's, or whose operators are about its elements themselves.
func (w *wanted) elements(path string, v bson.Value) {
	doc, ok := v.DocumentOK()
	if first, _, _ := bson.First(doc); !ok || first == "" {
		return
	} else if strings.HasPrefix(first, "$") && first != "$and" && first != "$or" {
		w.field(path, v)
		return
	}
	w.read(doc, path+".")
}

// key puts the fields together, nil where there is none.
func (w *wanted) key(sort bson.Document) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	seen := map[string]bool{}
	add := func(path string, direction int32) {
		if path != "" && !seen[path] && len(seen) < wantedFields {
			seen[path] = true
			dst = bsoncore.AppendInt32Element(dst, path, direction)
		}
	}
	for _, path := range w.equal {
		add(path, 1)
	}
	if w.geo != "" && len(seen) < wantedFields {
		seen[w.geo] = true
		dst = bsoncore.AppendStringElement(dst, w.geo, "2dsphere")
	}
	// A sort beside an $or is a matter of its branches.
	if w.branches == nil || len(seen) > 0 || len(w.ranges) > 0 {
		it := bson.Elements(sort)
		for len(sort) > 0 && it.Next() {
			if n, ok := bson.NumberOf(it.Value()); ok && n.Sign() < 0 {
				add(string(it.Key()), -1)
			} else if ok {
				add(string(it.Key()), 1)
			}
		}
	}
	for _, path := range w.ranges[:min(1, len(w.ranges))] {
		add(path, 1)
	}
	if len(seen) == 0 && w.branches == nil && len(w.weak) > 0 {
		add(w.weak[0], 1)
	}
	if len(seen) == 0 {
		return nil
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// CreateIndexes renders the command that makes indexes of these keys, as the shell takes it.
func CreateIndexes(database, collection string, keys []bson.Document) string {
	var b strings.Builder
	b.WriteString("db.getSiblingDB(" + strconv.Quote(database) + ").runCommand({createIndexes: " + strconv.Quote(collection) + ", indexes: [")
	for i, key := range keys {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("{key: " + keyText(key) + ", name: " + strconv.Quote(indexName(key)) + "}")
	}
	b.WriteString("]})")
	return b.String()
}

func keyText(key bson.Document) string {
	var parts []string
	it := bson.Elements(key)
	for it.Next() {
		parts = append(parts, strconv.Quote(string(it.Key()))+": "+valueText(it.Value()))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// indexName is the name that drivers give to an index: fields and directions in a row.
func indexName(key bson.Document) string {
	var parts []string
	it := bson.Elements(key)
	for it.Next() {
		parts = append(parts, string(it.Key()), strings.Trim(valueText(it.Value()), `"`))
	}
	return strings.Join(parts, "_")
}
