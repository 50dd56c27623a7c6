package backendtest

import (
	"fmt"
	"strings"

	"oxbow/internal/bson"
)

// bindings are the values that a case's names stand for.
type bindings map[string]bson.Value

// gossip are the fields that members of a deployment add to replies for one another.
var gossip = map[string]bool{
	"$clusterTime": true, "operationTime": true, "electionId": true, "opTime": true, "lastCommittedOpTime": true,
	"$gleStats": true, "$configServerState": true, "$topologyTime": true, "$configTime": true,
}

// matchReply reports how got differs from want.
func matchReply(want, got bson.Document, bound bindings) error {
	return matchFields("", want, got, bound)
}

// matchFields compares documents whose fields may come in any order.
func matchFields(path string, want, got bson.Document, bound bindings) error {
	open := false
	it := bson.Elements(want)
	for it.Next() {
		key := string(it.Key())
		if key == "..." {
			open = true
			continue
		}
		v, ok := bson.Get(got, key)
		if !ok {
			return fmt.Errorf("%s%s is missing", path, key)
		}
		if err := matchValue(path+key, it.Value(), v, key == "value", bound); err != nil {
			return err
		}
	}
	it = bson.Elements(got)
	for it.Next() && !open {
		key := string(it.Key())
		if _, wanted := bson.Get(want, key); !wanted && !(path == "" && gossip[key]) {
			return fmt.Errorf("%s%s is not expected: %s", path, key, it.Value())
		}
	}
	return nil
}

// matchValue compares values. strict asks for the order of a document's fields as well.
func matchValue(path string, want, got bson.Value, strict bool, bound bindings) error {
	if pattern, ok := want.StringValueOK(); ok && strings.HasPrefix(pattern, "<") && strings.HasSuffix(pattern, ">") {
		return matchPattern(path, pattern[1:len(pattern)-1], got, bound)
	}
	if want.Type != got.Type {
		return fmt.Errorf("%s is a %s, not a %s: %s", path, bson.TypeName(got.Type), bson.TypeName(want.Type), got)
	}
	switch want.Type {
	case bson.TypeArray:
		return matchInOrder(path, want.Data, got.Data, bound)
	case bson.TypeDocument:
		if _, open := bson.Get(want.Data, "..."); !strict || open {
			return matchFields(path+".", want.Data, got.Data, bound)
		}
		return matchInOrder(path, want.Data, got.Data, bound)
	}
	if string(want.Data) != string(got.Data) {
		return fmt.Errorf("%s is %s, not %s", path, got, want)
	}
	return nil
}

// matchInOrder compares the elements of arrays, or of documents inside them, one by one.
func matchInOrder(path string, want, got []byte, bound bindings) error {
	w, g := bson.Elements(want), bson.Elements(got)
	for w.Next() {
		if !g.Next() {
			return fmt.Errorf("%s ends before %s: %s", path, w.Key(), w.Value())
		}
		if string(w.Key()) != string(g.Key()) {
			return fmt.Errorf("%s has %s where %s is expected", path, g.Key(), w.Key())
		}
		if err := matchValue(path+"."+string(w.Key()), w.Value(), g.Value(), true, bound); err != nil {
			return err
		}
	}
	if g.Next() {
		return fmt.Errorf("%s goes on with %s: %s", path, g.Key(), g.Value())
	}
	return nil
}

func matchPattern(path, pattern string, got bson.Value, bound bindings) error {
	ok := false
	switch {
	case pattern == "any":
		ok = true
	case pattern == "number":
		ok = bson.IsNumber(got.Type)
	case pattern == "ended":
		ok = got.Type == bson.TypeInt64 && got.Int64() == 0
	case strings.HasPrefix(pattern, "$"):
		before, known := bound[pattern]
		if !known {
			bound[pattern] = got
			return nil
		}
		ok = before.Equal(got)
	default:
		ok = bson.TypeName(got.Type) == pattern
	}
	if !ok {
		return fmt.Errorf("%s is %s (%s), not <%s>", path, got, bson.TypeName(got.Type), pattern)
	}
	return nil
}

// substitute puts bound values in the place of their names, in a command.
func substitute(doc bson.Document, bound bindings) bson.Document {
	return substituteIn(doc, bound)
}

func substituteIn(doc []byte, bound bindings) []byte {
	out := make([]byte, 4, len(doc)+16)
	it := bson.Elements(doc)
	for it.Next() {
		v := it.Value()
		if name, ok := v.StringValueOK(); ok && strings.HasPrefix(name, "<$") && strings.HasSuffix(name, ">") {
			if b, known := bound[name[1:len(name)-1]]; known {
				v = b
			}
		}
		data := v.Data
		if v.Type == bson.TypeDocument || v.Type == bson.TypeArray {
			data = substituteIn(v.Data, bound)
		}
		out = append(out, byte(v.Type))
		out = append(out, it.Key()...)
		out = append(out, 0)
		out = append(out, data...)
	}
	out = append(out, 0)
	n := len(out)
	out[0], out[1], out[2], out[3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
	return out
}
