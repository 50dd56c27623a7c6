package query

import (
	"bytes"
	"slices"
	"strings"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// Sort is a compiled sort order. The zero Sort is "no order".
type Sort struct {
	Keys []SortKey
}

// SortKey is one path of a sort.
type SortKey struct {
	Path bson.Path
	Desc bool
}

// maxSortKeys is how many paths a sort can have (https://www.mongodb.com/docs/manual/reference/limits/).
const maxSortKeys = 32

// ParseSort compiles {path: 1 or -1, …}; {$natural: …} gives no keys and natural ±1. At most 32 keys (13103), no repeats (7472500);
// directions that are no numbers are error 15974, numbers other than 1 and -1 error 15975.
func ParseSort(spec bson.Document) (s *Sort, natural int, err error) {
	s = &Sort{}
	if spec == nil {
		return s, 0, nil
	}
	it := bson.Elements(spec)
	for it.Next() {
		path, v := string(it.Key()), it.Value()
		if path == "$natural" {
			natural, err = parseNatural(spec, v)
			return s, natural, err
		}
		key, err := parseSortKey(path, v)
		if err != nil {
			return nil, 0, err
		}
		if slices.ContainsFunc(s.Keys, func(k SortKey) bool { return k.Path.String() == path }) {
			return nil, 0, mongoerr.New(mongoerr.SortKeyDuplicate, "$sort key must not contain duplicate keys (duplicate: '%s')", path)
		}
		s.Keys = append(s.Keys, key)
	}
	if it.Err() != nil {
		return nil, 0, mongoerr.New(mongoerr.InvalidBSON, "the sort specification is malformed")
	}
	if len(s.Keys) > maxSortKeys {
		return nil, 0, mongoerr.New(mongoerr.TooManySortKeys, "too many compound keys")
	}
	return s, 0, nil
}

func parseNatural(spec bson.Document, v bson.Value) (int, error) {
	if countElements(spec) > 1 {
		return 0, mongoerr.New(mongoerr.BadValue, "Cannot include '$natural' in compound sort: %s",
			valueText(bson.Value{Type: bson.TypeDocument, Data: spec}))
	}
	n, _ := wholeNumber(v)
	if n != 1 && n != -1 {
		return 0, mongoerr.New(mongoerr.BadValue, "$natural sort cannot be set to a value other than -1 or 1.")
	}
	return int(n), nil
}

func parseSortKey(path string, v bson.Value) (SortKey, error) {
	if v.Type == bson.TypeDocument {
		if name, _, _ := bson.First(v.Data); strings.HasPrefix(name, "$") {
			return SortKey{}, mongoerr.New(mongoerr.SortKeyInvalid, "sorting by %s is not supported", name)
		}
	}
	number, ok := bson.NumberOf(v)
	if !ok {
		return SortKey{}, mongoerr.New(mongoerr.SortKeyInvalid, "Illegal key in $sort specification: %s", elementText(path, v))
	}
	direction, _ := number.TruncInt64()
	if direction != 1 && direction != -1 {
		return SortKey{}, mongoerr.New(mongoerr.SortDirectionInvalid, "$sort key ordering must be 1 (for ascending) or -1 (for descending)")
	}
	if err := checkFieldPath(path); err != nil {
		return SortKey{}, err
	}
	return SortKey{Path: bson.ParsePath(path), Desc: direction < 0}, nil
}

// checkFieldPath refuses what is no field path of an aggregation: empty parts and parts that begin with a $.
func checkFieldPath(path string) error {
	if path == "" {
		return mongoerr.New(mongoerr.FieldPathEmpty, "FieldPath cannot be constructed with empty string")
	}
	if strings.HasSuffix(path, ".") {
		return mongoerr.New(mongoerr.FieldPathTrailingDot, "FieldPath must not end with a '.'.")
	}
	parts := strings.Split(path, ".")
	if len(parts) > bson.MaxDepth {
		return tooDeep()
	}
	for _, part := range parts {
		if part == "" {
			return mongoerr.New(mongoerr.FieldPathEmptyPart, "FieldPath field names may not be empty strings.")
		}
		if part[0] == '$' {
			return mongoerr.New(mongoerr.FieldPathDollar, "FieldPath field names may not start with '$'. Consider using $getField or $setField.")
		}
	}
	return nil
}

// AppendKey appends doc's sort key to dst: bytes.Compare of two keys is the order of their documents. A path that goes through
// arrays sorts by its least value, or by its greatest with Desc; an empty array sorts below null, a missing field as null
// (https://www.mongodb.com/docs/manual/reference/method/cursor.sort/). Two keys of one sort that go through different arrays of a
// document are BadValue.
func (s *Sort) AppendKey(dst []byte, doc bson.Document) ([]byte, error) {
	start := len(dst)
	for _, k := range s.Keys {
		v, ok, array := k.Path.Lookup(doc)
		if array {
			return s.appendArrayKey(dst[:start], doc)
		}
		if !ok {
			v = bson.Null
		}
		dst = bson.AppendKey(dst, v, k.Desc)
	}
	return dst, nil
}

// appendArrayKey appends the key of a document in which a path meets an array. Paths that go through the same array have the values of one of its
// elements; the element whose key is least counts.
func (s *Sort) appendArrayKey(dst []byte, doc bson.Document) ([]byte, error) {
	states := make([]keyState, len(s.Keys))
	for i := range states {
		states[i] = keyState{v: bson.Value{Type: bson.TypeDocument, Data: doc}}
	}
	best := keySearch{sort: s, dst: dst, start: len(dst)}
	err := best.expand(states)
	return best.dst, err
}

// keyState is how far one sort key's path has been followed.
type keyState struct {
	v    bson.Value // what the path has reached; Type 0 for an empty array at its end
	part int        // the path's next part
	done bool       // v is the key's value
}

// keySearch finds the least key among those of a document's array elements.
type keySearch struct {
	sort  *Sort
	dst   []byte // the least key so far lies behind start
	start int
	found bool
}

// expand follows all paths to the next array and goes on with each of its elements, or takes the key if all paths are at their ends.
func (f *keySearch) expand(states []keyState) error {
	var array bson.Value
	for i := range states {
		states[i].follow(f.sort.Keys[i].Path)
		switch {
		case states[i].done:
		case array.Type == 0:
			array = states[i].v
		case &array.Data[0] != &states[i].v.Data[0]:
			return mongoerr.New(mongoerr.BadValue, "cannot sort with keys that are parallel arrays")
		}
	}
	if array.Type == 0 {
		f.take(states)
		return nil
	}
	it := bson.Elements(array.Data)
	next := make([]keyState, len(states))
	empty := true
	for it.Next() {
		empty = false
		copy(next, states)
		f.enter(next, it.Value())
		if err := f.expand(next); err != nil {
			return err
		}
	}
	if empty {
		copy(next, states)
		f.enter(next, bson.Value{})
		return f.expand(next)
	}
	return nil
}

// enter moves the states that wait at an array into one of its elements, of Type 0 if it has none.
func (f *keySearch) enter(states []keyState, element bson.Value) {
	for i := range states {
		st := &states[i]
		if st.done {
			continue
		}
		last := st.part == len(f.sort.Keys[i].Path.Parts())
		switch {
		case last:
			*st = keyState{v: element, done: true}
		case element.Type == bson.TypeDocument:
			st.v = element
		default:
			*st = keyState{v: bson.Null, done: true}
		}
	}
}

// follow walks a path through documents, and into an array that it names an index of, until it is done or meets another array.
func (st *keyState) follow(path bson.Path) {
	parts := path.Parts()
	for !st.done {
		switch {
		case st.v.Type == bson.TypeArray:
			if st.part == len(parts) || !st.index(path.Index(st.part)) {
				return
			}
		case st.part == len(parts):
			st.done = true
		case st.v.Type == bson.TypeDocument:
			v, ok := bson.Get(st.v.Data, parts[st.part])
			if !ok {
				v, st.done = bson.Null, true
			}
			st.v = v
			st.part++
		default:
			st.v, st.done = bson.Null, true
		}
	}
}

// index steps into the array element that the path names, and reports whether there is one.
func (st *keyState) index(index int) bool {
	if index < 0 {
		return false
	}
	it := bson.Elements(st.v.Data)
	for i := 0; it.Next(); i++ {
		if i == index {
			st.v = it.Value()
			st.part++
			return true
		}
	}
	return false
}

// take keeps the key of the states if it is the least one.
func (f *keySearch) take(states []keyState) {
	end := len(f.dst)
	for i, st := range states {
		f.dst = bson.AppendKey(f.dst, st.v, f.sort.Keys[i].Desc)
	}
	candidate := f.dst[end:]
	if f.found && bytes.Compare(candidate, f.dst[f.start:end]) >= 0 {
		f.dst = f.dst[:end]
		return
	}
	n := copy(f.dst[f.start:], candidate)
	f.dst, f.found = f.dst[:f.start+n], true
}

// directed turns the result of a comparison around for descending order.
func directed(c int, desc bool) int {
	if desc {
		return -c
	}
	return c
}
