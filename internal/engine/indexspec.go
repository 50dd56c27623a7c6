package engine

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
)

const idIndexName = "_id_"

// idIndex is the index every table has: the order of its documents.
var idIndex = func() Index {
	key := bsoncore.BuildDocument(nil, bsoncore.AppendInt32Element(nil, "_id", 1))
	spec := bsoncore.AppendInt32Element(nil, "v", 2)
	spec = bsoncore.AppendDocumentElement(spec, "key", key)
	spec = bsoncore.AppendStringElement(spec, "name", idIndexName)
	return Index{Name: idIndexName, Keys: []IndexKey{{Path: bson.ParsePath("_id")}}, Spec: bsoncore.BuildDocument(nil, spec)}
}()

// indexSpec is a parsed index specification.
type indexSpec struct {
	Index
	pattern bson.Document // key as it was given
	isID    bool
	partial *query.Filter
}

// parseIndexSpec reads a specification as createIndexes has it
// (https://www.mongodb.com/docs/manual/reference/command/createIndexes/). Index types and options that are not built are refused by name.
func parseIndexSpec(spec bson.Document) (*indexSpec, error) {
	s := &indexSpec{}
	p := specParser{spec: spec, into: s}
	it := bson.Elements(spec)
	for it.Next() {
		if err := p.field(string(it.Key()), it.Value()); err != nil {
			return nil, err
		}
	}
	if err := it.Err(); err != nil {
		return nil, mongoerr.New(mongoerr.InvalidBSON, "index specification: %s", err)
	}
	if err := p.finish(); err != nil {
		return nil, err
	}
	return s, nil
}

// specParser collects a specification's fields.
type specParser struct {
	spec       bson.Document
	into       *indexSpec
	expire     *bson.Value
	background *bool  // as it was given, nil: not
	idOnly     string // an option that an _id index does not take
}

func (p *specParser) field(name string, v bson.Value) error {
	s := p.into
	switch name {
	case "key":
		if v.Type != bson.TypeDocument {
			return p.typeError(name, "object", v)
		}
		s.pattern = bytes.Clone(v.Data)
		return p.keys()
	case "name":
		text, ok := v.StringValueOK()
		if !ok {
			return p.typeError(name, "string", v)
		}
		if text == "" || strings.Contains(text, "\x00") {
			return mongoerr.New(mongoerr.CannotCreateIndex, "index name cannot be empty or contain a null byte")
		}
		s.Name = text
		return nil
	case "v":
		n, ok := v.AsInt64OK()
		if !ok {
			return p.typeError(name, "number", v)
		}
		if n != 1 && n != 2 {
			return mongoerr.New(mongoerr.CannotCreateIndex, "Invalid index specification %s; cannot create an index with v=%d", appendShell(nil, p.spec), n)
		}
		return nil
	case "unique":
		p.idOnly = name
		return p.flag(name, v, &s.Unique)
	case "sparse":
		p.idOnly = name
		return p.flag(name, v, &s.Sparse)
	case "hidden":
		return p.flag(name, v, &s.Hidden)
	case "background":
		p.background = new(bool)
		return p.flag(name, v, p.background) // every build is one that writers go on during: the option is only shown again
	case "dropDups":
		return p.flag(name, v, new(bool)) // sent by old clients, without effect since MongoDB 3.0
	case "ns":
		return nil // sent by old clients, without effect since MongoDB 4.4
	case "expireAfterSeconds":
		p.idOnly = name
		p.expire = &v
		return nil
	case "partialFilterExpression":
		if v.Type != bson.TypeDocument {
			return p.typeError(name, "object", v)
		}
		p.idOnly = name
		s.Partial = bytes.Clone(v.Data)
		return p.filter()
	case "collation":
		return mongoerr.New(mongoerr.CannotCreateIndex, "index option 'collation' is not supported")
	case "weights", "default_language", "language_override", "textIndexVersion", "2dsphereIndexVersion", "bits", "min", "max",
		"bucketSize", "wildcardProjection", "storageEngine", "clustered", "prepareUnique", "columnstoreProjection":
		return mongoerr.New(mongoerr.CannotCreateIndex, "index option '%s' is not supported", name)
	}
	return mongoerr.New(mongoerr.InvalidIndexSpecOption, "The field '%s' is not valid for an index specification. Specification: %s",
		name, appendShell(nil, p.spec))
}

func (p *specParser) typeError(name, want string, v bson.Value) error {
	return mongoerr.New(mongoerr.TypeMismatch, "The field '%s' must be %s, but got %s", name, want, v.Type)
}

func (p *specParser) flag(name string, v bson.Value, to *bool) error {
	if v.Type == bson.TypeBoolean {
		*to = v.Boolean()
		return nil
	}
	f, ok := v.AsFloat64OK()
	if !ok {
		return p.typeError(name, "bool", v)
	}
	*to = f != 0
	return nil
}

// keys reads the key pattern.
func (p *specParser) keys() error {
	it := bson.Elements(p.into.pattern)
	for it.Next() {
		k, err := parseIndexKey(string(it.Key()), it.Value())
		if err != nil {
			return err
		}
		p.into.Keys = append(p.into.Keys, k)
	}
	switch n := len(p.into.Keys); {
	case n == 0:
		return mongoerr.New(mongoerr.CannotCreateIndex, "Index keys cannot be an empty object.")
	case n > maxIndexFields:
		return mongoerr.New(mongoerr.CannotCreateIndex, "too many compound keys: %d, at most %d", n, maxIndexFields)
	}
	p.into.isID = len(p.into.Keys) == 1 && p.into.Keys[0].Path.String() == "_id" && !p.into.Keys[0].Desc
	return nil
}

func parseIndexKey(path string, v bson.Value) (IndexKey, error) {
	if kind, ok := v.StringValueOK(); ok {
		switch kind {
		case "text", "2dsphere", "2d", "hashed", "columnstore", "wildcard", "geoHaystack":
			return IndexKey{}, mongoerr.New(mongoerr.CannotCreateIndex, "index type '%s' is not supported", kind)
		}
		return IndexKey{}, mongoerr.New(mongoerr.CannotCreateIndex, "Unknown index plugin '%s'", kind)
	}
	f, ok := v.AsFloat64OK()
	switch {
	case !ok:
		return IndexKey{}, mongoerr.New(mongoerr.CannotCreateIndex,
			"Values in v:2 index key pattern cannot be of type %s. Only numbers > 0, numbers < 0, and strings are allowed.", v.Type)
	case math.IsNaN(f):
		return IndexKey{}, mongoerr.New(mongoerr.CannotCreateIndex, "Values in the index key pattern cannot be NaN.")
	case f == 0:
		return IndexKey{}, mongoerr.New(mongoerr.CannotCreateIndex, "Values in the index key pattern cannot be 0.")
	}
	if path == "$**" || strings.HasSuffix(path, ".$**") {
		return IndexKey{}, mongoerr.New(mongoerr.CannotCreateIndex, "index type 'wildcard' is not supported")
	}
	for _, part := range strings.Split(path, ".") {
		if part == "" {
			return IndexKey{}, mongoerr.New(mongoerr.CannotCreateIndex, "Index keys cannot contain an empty field.")
		}
		if part[0] == '$' && part != "$id" && part != "$ref" && part != "$db" {
			return IndexKey{}, mongoerr.New(mongoerr.CannotCreateIndex, "Index key contains an illegal field name: field name starts with '$'.")
		}
	}
	return IndexKey{Path: bson.ParsePath(path), Desc: f < 0}, nil
}

// filter reads the partialFilterExpression.
func (p *specParser) filter() error {
	f, err := query.ParseFilter(p.into.Partial, query.Env{})
	if err != nil {
		return err
	}
	if !partialAllows(f.Root()) {
		return mongoerr.New(mongoerr.CannotCreateIndex, "Expression not supported in partial index: %s", appendShell(nil, p.into.Partial))
	}
	p.into.partial = f
	return nil
}

// partialAllows tells the predicates that a partial index may have
// (https://www.mongodb.com/docs/manual/core/index-partial/).
func partialAllows(n query.Node) bool {
	var of []query.Node
	switch n := any(n).(type) {
	case nil, *query.Compare, *query.Type:
		return true
	case *query.In:
		return len(n.Regexes) == 0
	case *query.Exists:
		return n.Want
	case *query.And:
		of = n.Of
	case *query.Or:
		of = n.Of
	default:
		return false
	}
	for _, o := range of {
		if !partialAllows(o) {
			return false
		}
	}
	return true
}

// finish checks what concerns several fields and writes the normal form.
func (p *specParser) finish() error {
	s := p.into
	if s.pattern == nil {
		return mongoerr.New(mongoerr.FailedToParse, "The 'key' field is a required property of an index specification")
	}
	if s.Partial != nil && s.Sparse {
		return mongoerr.New(mongoerr.CannotCreateIndex, `cannot mix "partialFilterExpression" and "sparse" options`)
	}
	if err := p.checkExpire(); err != nil {
		return err
	}
	if s.isID {
		return p.finishID()
	}
	if s.Name == "" {
		s.Name = indexName(s.pattern)
	}
	switch s.Name {
	case idIndexName:
		return mongoerr.New(mongoerr.BadValue,
			"The index name '_id_' is reserved for the _id index, which must have key pattern {_id: 1}, found key: %s", appendShell(nil, s.pattern))
	case "*":
		return mongoerr.New(mongoerr.BadValue, "The index name '*' is not valid.")
	}
	s.Spec = p.normal()
	return nil
}

func (p *specParser) finishID() error {
	if p.idOnly != "" && p.idOnly != "hidden" && (p.idOnly != "unique" || !p.into.Unique) && (p.idOnly != "sparse" || p.into.Sparse) {
		return mongoerr.New(mongoerr.InvalidIndexSpecOption, "The field '%s' is not valid for an _id index specification. Specification: %s",
			p.idOnly, appendShell(nil, p.spec))
	}
	if p.into.Hidden {
		return mongoerr.New(mongoerr.BadValue, "can't hide _id index")
	}
	p.into.Index = idIndex
	return nil
}

func (p *specParser) checkExpire() error {
	if p.expire == nil {
		return nil
	}
	n, ok := p.expire.AsFloat64OK()
	switch {
	case !ok:
		return p.typeError("expireAfterSeconds", "number", *p.expire)
	case n < 0 || n > math.MaxInt32 || math.IsNaN(n):
		return mongoerr.New(mongoerr.CannotCreateIndex, "TTL index 'expireAfterSeconds' option must be within an acceptable range, 0 to %d", math.MaxInt32)
	case len(p.into.Keys) != 1:
		return mongoerr.New(mongoerr.CannotCreateIndex, "TTL indexes are single-field indexes, compound indexes do not support TTL. Index spec: %s",
			appendShell(nil, p.spec))
	}
	return mongoerr.New(mongoerr.CommandNotSupported,
		"'createIndexes.indexes.expireAfterSeconds' is not supported yet: nothing would be deleted. A layout by time with 'keep' lets documents go")
}

// normal writes the specification as listIndexes shows it.
func (p *specParser) normal() bson.Document {
	s := p.into
	d := bsoncore.AppendInt32Element(nil, "v", 2)
	d = bsoncore.AppendDocumentElement(d, "key", s.pattern)
	d = bsoncore.AppendStringElement(d, "name", s.Name)
	for _, f := range []struct {
		name string
		on   bool
	}{{"unique", s.Unique}, {"sparse", s.Sparse}, {"hidden", s.Hidden}} {
		if f.on {
			d = bsoncore.AppendBooleanElement(d, f.name, true)
		}
	}
	if p.background != nil {
		d = bsoncore.AppendBooleanElement(d, "background", *p.background)
	}
	if s.Partial != nil {
		d = bsoncore.AppendDocumentElement(d, "partialFilterExpression", s.Partial)
	}
	return bsoncore.BuildDocument(nil, d)
}

// indexName makes the name that clients give an index without one: a_1_b_-1.
func indexName(pattern bson.Document) string {
	var name []byte
	it := bson.Elements(pattern)
	for it.Next() {
		if len(name) > 0 {
			name = append(name, '_')
		}
		name = append(append(name, it.Key()...), '_')
		f, _ := it.Value().AsFloat64OK()
		name = strconv.AppendFloat(name, f, 'f', -1, 64)
	}
	return string(name)
}

// alike reports whether two specifications say the same index apart from its name: the same keys, and of the options those that tell
// indexes with the same keys apart (since MongoDB 5.0 unique, sparse and partialFilterExpression).
func (s *indexSpec) alike(o *Index) bool {
	if len(s.Keys) != len(o.Keys) || s.Unique != o.Unique || s.Sparse != o.Sparse || !bytes.Equal(s.Partial, o.Partial) {
		return false
	}
	for i, k := range s.Keys {
		if k.Desc != o.Keys[i].Desc || k.Path.String() != o.Keys[i].Path.String() {
			return false
		}
	}
	return true
}

// sameOptions reports whether also the options that don't tell indexes apart are the same.
func (s *indexSpec) sameOptions(o *Index) bool {
	return s.Hidden == o.Hidden
}

// against compares a wanted index with an existing one: exists when there is nothing to do, an error when they can't both be.
func (s *indexSpec) against(o *Index) (exists bool, err error) {
	same := s.alike(o)
	switch {
	case s.Name == o.Name && !same:
		return false, mongoerr.New(mongoerr.IndexKeySpecsConflict,
			"An existing index has the same name as the requested index. When index names are not specified, they are auto generated and can cause conflicts. Please refer to our documentation. Requested index: %s, existing index: %s",
			appendShell(nil, s.Spec), appendShell(nil, o.Spec))
	case s.Name == o.Name && !s.sameOptions(o):
		return false, mongoerr.New(mongoerr.IndexOptionsConflict,
			"An equivalent index already exists with the same name but different options. Requested index: %s, existing index: %s",
			appendShell(nil, s.Spec), appendShell(nil, o.Spec))
	case s.Name == o.Name:
		return true, nil
	case same && s.sameOptions(o):
		return false, mongoerr.New(mongoerr.IndexOptionsConflict, "Index already exists with a different name: %s", o.Name)
	case same:
		return false, mongoerr.New(mongoerr.IndexOptionsConflict,
			"An equivalent index already exists with a different name and options. Requested index: %s, existing index: %s",
			appendShell(nil, s.Spec), appendShell(nil, o.Spec))
	}
	return false, nil
}

// newIndex makes an index of the table from its record.
func (t *Table) newIndex(r indexRecord) (*index, error) {
	s, err := parseIndexSpec(r.spec)
	if err != nil {
		return nil, fmt.Errorf("parse specification: %w", err)
	}
	ix := &index{Index: s.Index, number: r.number, state: r.state, partial: s.partial, flags: &indexFlags{}}
	ix.Spec = r.spec
	ix.prefix = appendIndexPrefix(nil, t.id, r.number, s.Keys)
	ix.end = appendPrefixEnd(nil, ix.prefix)
	return ix, nil
}
