package query

import (
	"slices"
	"strings"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// parsePush compiles the argument of $push: a value, or {$each: […], $position, $slice, $sort}.
func parsePush(v bson.Value) (fieldOperator, error) {
	o := push{position: maxElements}
	if v.Type != bson.TypeDocument {
		o.values = []bson.Value{v}
		return o, nil
	}
	if _, each := bson.Get(v.Data, "$each"); !each {
		o.values = []bson.Value{v}
		return o, nil
	}
	seen := map[string]bool{}
	it := bson.Elements(v.Data)
	for it.Next() {
		clause := string(it.Key())
		if seen[clause] {
			return nil, mongoerr.New(mongoerr.BadValue, "Only one %s is supported.", clause)
		}
		seen[clause] = true
		if err := o.parseClause(clause, it.Value()); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (o *push) parseClause(clause string, v bson.Value) error {
	var ok bool
	switch clause {
	case "$each":
		if v.Type != bson.TypeArray {
			return mongoerr.New(mongoerr.BadValue, "The argument to $each in $push must be an array but it was of type: %s", bson.TypeName(v.Type))
		}
		o.values = arrayValues(v.Data)
	case "$slice":
		if o.slice, ok = wholeNumber(v); !ok {
			return mongoerr.New(mongoerr.BadValue, "The value for $slice must be an integer value but was given type: %s", bson.TypeName(v.Type))
		}
		o.sliced = true
	case "$position":
		if o.position, ok = wholeNumber(v); !ok {
			return mongoerr.New(mongoerr.BadValue, "The value for $position must be an integer value, not of type: %s", bson.TypeName(v.Type))
		}
	case "$sort":
		var err error
		o.sort, err = parsePushSort(v)
		return err
	default:
		return mongoerr.New(mongoerr.BadValue, "Unrecognized clause in $push: %s", clause)
	}
	return nil
}

// parsePushSort compiles $push's $sort: 1 or -1 for whole elements, or {field: 1 or -1, …}.
func parsePushSort(v bson.Value) (*pushSort, error) {
	if bson.IsNumber(v.Type) {
		desc, err := pushDirection(v)
		return &pushSort{desc: desc}, err
	}
	if v.Type != bson.TypeDocument {
		return nil, mongoerr.New(mongoerr.BadValue,
			"The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields")
	}
	s := &pushSort{}
	it := bson.Elements(v.Data)
	for it.Next() {
		field := string(it.Key())
		desc, err := pushDirection(it.Value())
		if err != nil {
			return nil, err
		}
		if field == "" {
			return nil, mongoerr.New(mongoerr.BadValue, "The $sort field cannot be empty")
		}
		if slices.Contains(strings.Split(field, "."), "") {
			return nil, mongoerr.New(mongoerr.BadValue, "The $sort field is a dotted field but has an empty part: %s", field)
		}
		s.fields = append(s.fields, SortKey{Path: bson.ParsePath(field), Desc: desc})
	}
	if len(s.fields) == 0 {
		return nil, mongoerr.New(mongoerr.BadValue, "The $sort pattern is empty when it should be a set of fields.")
	}
	return s, nil
}

func pushDirection(v bson.Value) (desc bool, err error) {
	n, _ := wholeNumber(v)
	if n != 1 && n != -1 {
		return false, mongoerr.New(mongoerr.BadValue, "The $sort element value must be either 1 or -1")
	}
	return n < 0, nil
}

// parseAddToSet compiles the argument of $addToSet: a value, or {$each: […]}.
func parseAddToSet(v bson.Value) (fieldOperator, error) {
	values := []bson.Value{v}
	if v.Type == bson.TypeDocument {
		key, each, _ := bson.First(v.Data)
		if key == "$each" {
			if each.Type != bson.TypeArray {
				return nil, mongoerr.New(mongoerr.TypeMismatch, "The argument to $each in $addToSet must be an array but it was of type %s", bson.TypeName(each.Type))
			}
			if countElements(v.Data) > 1 {
				return nil, mongoerr.New(mongoerr.BadValue, "Found unexpected fields after $each in $addToSet: %s", valueText(v))
			}
			values = arrayValues(each.Data)
		}
	}
	var o addToSet
	for _, v := range values {
		if !slices.ContainsFunc(o.values, func(had bson.Value) bool { return bson.Compare(had, v) == 0 }) {
			o.values = append(o.values, v)
		}
	}
	return o, nil
}

// parsePop compiles the argument of $pop.
func parsePop(path string, v bson.Value) (fieldOperator, error) {
	if !bson.IsNumber(v.Type) {
		return nil, mongoerr.New(mongoerr.FailedToParse, "Expected a number in: %s", elementText(path, v))
	}
	n, ok := wholeNumber(v)
	if !ok {
		return nil, mongoerr.New(mongoerr.FailedToParse, "Expected an integer: %s", elementText(path, v))
	}
	if n != 1 && n != -1 {
		return nil, mongoerr.New(mongoerr.FailedToParse, "$pop expects 1 or -1, found: %d", n)
	}
	return pop{first: n < 0}, nil
}

// parsePullAll compiles the argument of $pullAll.
func parsePullAll(v bson.Value) (fieldOperator, error) {
	if v.Type != bson.TypeArray {
		return nil, mongoerr.New(mongoerr.BadValue, "$pullAll requires an array argument but was given a %s", bson.TypeName(v.Type))
	}
	return pull{name: "$pullAll", matches: func(_ *applier, element bson.Value) (bool, error) {
		return containsValue(v.Data, element), nil
	}}, nil
}

// parsePull compiles the argument of $pull: a document is a filter on elements that are documents, a document of operators or a regular
// expression a predicate on the element itself, and any other value stands for the elements equal to it.
func parsePull(v bson.Value, env Env) (fieldOperator, error) {
	o := pull{name: "$pull"}
	key, _, _ := bson.First(v.Data)
	switch {
	case v.Type == bson.TypeDocument && !isPredicateOperator(key):
		filter, err := ParseFilter(v.Data, env)
		if err != nil {
			return nil, err
		}
		o.matches = func(_ *applier, element bson.Value) (bool, error) {
			if element.Type != bson.TypeDocument {
				return false, nil
			}
			return filter.Match(element.Data)
		}
	case v.Type == bson.TypeDocument || v.Type == bson.TypeRegex:
		filter, err := ParseFilter(wrapValue(nil, wrappedName, v), env)
		if err != nil {
			return nil, err
		}
		o.matches = func(ap *applier, element bson.Value) (bool, error) {
			ap.wrapped = wrapValue(ap.wrapped[:0], wrappedName, element)
			return filter.Match(ap.wrapped)
		}
	default:
		o.matches = func(_ *applier, element bson.Value) (bool, error) { return bson.Compare(element, v) == 0, nil }
	}
	return o, nil
}

// isPredicateOperator reports whether a document whose first key this is holds predicates on one value rather than a filter of its own.
func isPredicateOperator(key string) bool {
	if !strings.HasPrefix(key, "$") {
		return false
	}
	switch key {
	case "$and", "$or", "$nor", "$expr", "$where", "$text", "$comment", "$jsonSchema", "$alwaysTrue", "$alwaysFalse", "$ref", "$id", "$db":
		return false
	}
	return true
}

// wrappedName is the field under which an array's element is shown to a filter.
const wrappedName = "e"
