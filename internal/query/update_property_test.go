package query

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oxbow/internal/bson"
)

// drawValue draws a value of a few types, nested at most depth deep.
func drawValue(t *rapid.T, depth int) bson.Value {
	kinds := 7
	if depth > 0 {
		kinds = 9
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0, 1:
		return bson.Int32(rapid.Int32Range(-3, 3).Draw(t, "int")).Value()
	case 2:
		return bson.Int64(rapid.Int64().Draw(t, "long")).Value()
	case 3:
		return bson.Double(rapid.Float64().Draw(t, "double")).Value()
	case 4:
		return bson.Null
	case 5:
		return bson.Value{Type: bson.TypeBoolean, Data: []byte{1}}
	case 6:
		text := rapid.StringMatching(`[a-c]{0,3}`).Draw(t, "text")
		return bson.Value{Type: bson.TypeString, Data: append(append(bson.Int32(int32(len(text)+1)).Append(nil), text...), 0)}
	case 7:
		return bson.Value{Type: bson.TypeArray, Data: drawArray(t, depth-1)}
	}
	return bson.Value{Type: bson.TypeDocument, Data: drawDocument(t, depth-1)}
}

func drawArray(t *rapid.T, depth int) []byte {
	array := begin(nil)
	for i := range rapid.IntRange(0, 4).Draw(t, "length") {
		v := drawValue(t, depth)
		array = append(appendIndexedHeader(array, v.Type, i), v.Data...)
	}
	return finish(array, 0)
}

// drawDocument draws a document with distinct names from a few.
func drawDocument(t *rapid.T, depth int) bson.Document {
	doc := begin(nil)
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "0", "1"}), 0, 5, rapid.ID[string]).Draw(t, "names")
	for _, name := range names {
		v := drawValue(t, depth)
		doc = append(appendHeader(doc, v.Type, []byte(name)), v.Data...)
	}
	return finish(doc, 0)
}

func drawPath(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "0", "1"}), 1, 3).Draw(t, "path"), ".")
}

// drawUpdate draws operators with an argument that they take, on paths none of which begins with another.
func drawUpdate(t *rapid.T, operators ...string) (update bson.Value, paths []string) {
	u := begin(nil)
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(operators), 1, 3, rapid.ID[string]).Draw(t, "operators") {
		head := len(appendHeader(u, bson.TypeDocument, []byte(name)))
		u = begin(appendHeader(u, bson.TypeDocument, []byte(name)))
		for range rapid.IntRange(1, 3).Draw(t, "fields") {
			path, v := drawPath(t), drawValue(t, 1)
			if slices.ContainsFunc(paths, func(other string) bool { return conflict(path, other) }) {
				continue
			}
			switch name {
			case "$inc", "$mul", "$pop":
				v = bson.Int32(1).Value()
			case "$pullAll":
				v = bson.Value{Type: bson.TypeArray, Data: drawArray(t, 0)}
			case "$currentDate":
				v = bson.Value{Type: bson.TypeBoolean, Data: []byte{1}}
			}
			u = append(appendHeader(u, v.Type, []byte(path)), v.Data...)
			paths = append(paths, path)
		}
		u = finish(u, head)
	}
	return bson.Value{Type: bson.TypeDocument, Data: finish(u, 0)}, paths
}

// conflict reports whether one of two paths begins with the other.
func conflict(a, b string) bool {
	return strings.HasPrefix(a+".", b+".") || strings.HasPrefix(b+".", a+".")
}

// drawApplied draws an update and a document that it can be applied to, and applies it.
func drawApplied(t *rapid.T, operators ...string) (u *Update, paths []string, doc, out bson.Document) {
	raw, paths := drawUpdate(t, operators...)
	u, doc, out = applied(t, raw)
	return u, paths, doc, out
}

// applied draws a document that an update can be applied to, and applies it. Many can't be: to no document with a string where a number is to be
// added. The empty one always can.
func applied(t *rapid.T, raw bson.Value) (u *Update, doc, out bson.Document) {
	u, err := ParseUpdate(raw, UpdateOptions{Env: testEnv})
	if err != nil {
		t.Fatalf("%s: %v", extJSON(raw.Data), err)
	}
	for tries := 3; ; tries-- {
		if doc = finish(begin(nil), 0); tries > 0 {
			doc = drawDocument(t, 2)
		}
		out, changed, err := u.Apply(nil, doc, -1)
		switch {
		case err != nil && tries == 0:
			t.Fatalf("%s on an empty document: %v", extJSON(raw.Data), err)
		case err != nil:
		case changed:
			return u, doc, out
		default:
			return u, doc, doc
		}
	}
}

var allOperators = []string{"$set", "$unset", "$inc", "$mul", "$min", "$max", "$currentDate", "$push", "$addToSet", "$pop", "$pullAll"}

// The result is a document; fields that no path begins with keep their bytes and their order, and come before new ones.
func TestUpdateLeavesTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, paths, doc, out := drawApplied(t, allOperators...)
		if err := bson.Validate(out, bson.MaxDepth); err != nil {
			t.Fatal(err)
		}
		touched := func(key []byte) bool {
			return slices.ContainsFunc(paths, func(path string) bool {
				first, _, _ := strings.Cut(path, ".")
				return first == string(key)
			})
		}
		rest := func(d bson.Document) (raws [][]byte) {
			for it := bson.Elements(d); it.Next(); {
				if !touched(it.Key()) {
					raws = append(raws, it.Raw())
				}
			}
			return raws
		}
		if !slices.EqualFunc(rest(doc), rest(out), bytes.Equal) {
			t.Fatalf("untouched fields changed: %s became %s", extJSON(doc), extJSON(out))
		}
		var before, after []string
		for it := bson.Elements(doc); it.Next(); {
			if _, ok := bson.Get(out, string(it.Key())); ok {
				before = append(before, string(it.Key()))
			}
		}
		for it := bson.Elements(out); it.Next(); {
			after = append(after, string(it.Key()))
		}
		if len(after) < len(before) || !slices.Equal(before, after[:len(before)]) {
			t.Fatalf("order %v became %v", before, after)
		}
	})
}

// Operators that set a fixed value change nothing the second time.
func TestUpdateTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, _, _, out := drawApplied(t, "$set", "$min", "$max", "$addToSet", "$pullAll", "$currentDate")
		again, changed, err := u.Apply(nil, out, -1)
		if err != nil || changed {
			t.Fatalf("%s became %s, %v", extJSON(out), extJSON(again), err)
		}
	})
}

// What was set is there, what was unset is not, as a reader of the documents and arrays on the path sees it.
func TestUpdateIsSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unset := rapid.Bool().Draw(t, "unset")
		name := "$set"
		if unset {
			name = "$unset"
		}
		raw, paths := drawUpdate(t, name)
		_, _, out := applied(t, raw)
		fields, _ := bson.Get(raw.Data, name)
		for _, path := range paths {
			got, ok := followPath(out, path)
			if unset {
				if ok && got.Type != bson.TypeNull {
					t.Fatalf("%s is still in %s", path, extJSON(out))
				}
				continue
			}
			want, _ := bson.Get(fields.Data, path)
			if !ok || !sameValue(got, want) {
				t.Fatalf("%s is %s in %s", path, valueText(got), extJSON(out))
			}
		}
	})
}

// followPath returns the value at a path through documents by name and arrays by index.
func followPath(doc bson.Document, path string) (bson.Value, bool) {
	v := bson.Value{Type: bson.TypeDocument, Data: doc}
	for _, part := range strings.Split(path, ".") {
		var ok bool
		switch v.Type {
		case bson.TypeDocument:
			v, ok = bson.Get(v.Data, part)
		case bson.TypeArray:
			index, err := strconv.Atoi(part)
			values := arrayValues(v.Data)
			if ok = err == nil && index < len(values); ok {
				v = values[index]
			}
		}
		if !ok {
			return bson.Value{}, false
		}
	}
	return v, true
}

// Touches is true of every path whose value an update changes, and a constant is what is there afterwards.
func TestTouches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw, _ := drawUpdate(t, allOperators...)
		if rapid.Bool().Draw(t, "replacement") {
			raw.Data = drawDocument(t, 2)
		}
		u, doc, out := applied(t, raw)
		path := bson.ParsePath(drawPath(t))
		_, _, arrayBefore := path.Lookup(doc)
		after, has, array := path.Lookup(out)
		touches, v, constant := u.Touches(path)
		if touches && SurelyLeaves(raw, path) {
			t.Fatalf("%s: at a look %s leaves it alone", path, extJSON(raw.Data))
		}
		if !touches && !bytes.Equal(reached(path, doc), reached(path, out)) {
			t.Fatalf("%s: %s became %s", path, extJSON(doc), extJSON(out))
		}
		if constant && !array && !arrayBefore && (has != (v.Type != 0) || !sameValue(after, v)) {
			t.Fatalf("%s: constant %s, but %s became %s", path, valueText(v), extJSON(doc), extJSON(out))
		}
	})
}

// reached returns the types and bytes of all values that a query on the path sees.
func reached(path bson.Path, doc bson.Document) []byte {
	var all []byte
	path.Walk(doc, false, func(v bson.Value, ok, expanded bool, index int) bool {
		all = append(append(all, byte(v.Type)), v.Data...)
		return true
	})
	return all
}

// One update of several paths does what updates of one path each do, one after the other in the order of the paths.
func TestUpdateByPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw, _ := drawUpdate(t, allOperators...)
		u, err := ParseUpdate(raw, UpdateOptions{Env: testEnv})
		if err != nil {
			t.Skip("conflict")
		}
		doc := drawDocument(t, 2)
		out, changed, err := u.Apply(nil, doc, -1)
		if !changed && err == nil {
			out = doc
		}
		step, changedSteps, stepErr := doc, false, error(nil)
		for _, single := range splitUpdate(raw.Data) {
			one, perr := ParseUpdate(single, UpdateOptions{Env: testEnv})
			if perr != nil {
				t.Fatal(perr)
			}
			next, c, aerr := one.Apply(nil, step, -1)
			if aerr != nil {
				stepErr = aerr
				break
			}
			if c {
				step, changedSteps = next, true
			}
		}
		if (err != nil) != (stepErr != nil) {
			t.Fatalf("error %v, by paths %v", err, stepErr)
		}
		if err == nil && (!bytes.Equal(out, step) || changed != changedSteps) {
			t.Fatalf("%s on %s\ngives    %s, changed %v\nby paths %s, changed %v", extJSON(raw.Data), extJSON(doc), extJSON(out), changed, extJSON(step), changedSteps)
		}
	})
}

// splitUpdate returns an update's single paths as updates, in the order in which they apply.
func splitUpdate(u []byte) []bson.Value {
	type single struct {
		steps []*updateNode
		u     bson.Value
	}
	var all []single
	for it := bson.Elements(u); it.Next(); {
		for f := bson.Elements(it.Value().Data); f.Next(); {
			fields := bson.Value{Type: bson.TypeDocument, Data: wrapValue(nil, string(f.Key()), f.Value())}
			s := single{u: bson.Value{Type: bson.TypeDocument, Data: wrapValue(nil, string(it.Key()), fields)}}
			for _, part := range strings.Split(string(f.Key()), ".") {
				s.steps = append(s.steps, newStep(part))
			}
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b single) int { return slices.CompareFunc(a.steps, b.steps, compareSteps) })
	var updates []bson.Value
	for _, s := range all {
		updates = append(updates, s.u)
	}
	return updates
}
