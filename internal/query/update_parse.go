package query

import (
	"slices"
	"strings"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// operatorParsers compiles the argument that each update operator has for one path; $rename, which has two paths, stands apart
// (https://www.mongodb.com/docs/manual/reference/operator/update/).
var operatorParsers = map[string]func(path string, v bson.Value, env Env) (fieldOperator, error){
	"$set":         func(_ string, v bson.Value, _ Env) (fieldOperator, error) { return setField{v}, nil },
	"$setOnInsert": func(_ string, v bson.Value, _ Env) (fieldOperator, error) { return setOnInsert{setField{v}}, nil },
	"$unset":       func(string, bson.Value, Env) (fieldOperator, error) { return unsetField{}, nil },
	"$min":         func(_ string, v bson.Value, _ Env) (fieldOperator, error) { return minMax{setField{v}, -1}, nil },
	"$max":         func(_ string, v bson.Value, _ Env) (fieldOperator, error) { return minMax{setField{v}, 1}, nil },
	"$inc":         func(path string, v bson.Value, _ Env) (fieldOperator, error) { return parseArithmetic(path, v, false) },
	"$mul":         func(path string, v bson.Value, _ Env) (fieldOperator, error) { return parseArithmetic(path, v, true) },
	"$bit":         func(_ string, v bson.Value, _ Env) (fieldOperator, error) { return parseBit(v) },
	"$currentDate": func(_ string, v bson.Value, env Env) (fieldOperator, error) {
		date, err := parseCurrentDate(v, env)
		return setField{date}, err
	},
	"$push":     func(_ string, v bson.Value, _ Env) (fieldOperator, error) { return parsePush(v) },
	"$addToSet": func(_ string, v bson.Value, _ Env) (fieldOperator, error) { return parseAddToSet(v) },
	"$pop":      func(path string, v bson.Value, _ Env) (fieldOperator, error) { return parsePop(path, v) },
	"$pull":     func(_ string, v bson.Value, env Env) (fieldOperator, error) { return parsePull(v, env) },
	"$pullAll":  func(_ string, v bson.Value, _ Env) (fieldOperator, error) { return parsePullAll(v) },
}

// parseOperators compiles a document of update operators to a tree of paths.
func parseOperators(u []byte, filters map[string]*arrayFilter, env Env) (*updateNode, error) {
	root := &updateNode{index: -1}
	it := bson.Elements(u)
	for it.Next() {
		name, fields := string(it.Key()), it.Value()
		parse := operatorParsers[name]
		if parse == nil && name != "$rename" {
			return nil, mongoerr.New(mongoerr.FailedToParse,
				"Unknown modifier: %s. Expected a valid update modifier or pipeline-style update specified as an array", name)
		}
		if fields.Type != bson.TypeDocument {
			return nil, mongoerr.New(mongoerr.FailedToParse,
				"Modifiers operate on fields but we found type %s instead. For example: {$mod: {<field>: ...}} not {%s}",
				bson.TypeName(fields.Type), elementText(name, fields))
		}
		if err := parseFields(root, fields.Data, parse, filters, env); err != nil {
			return nil, err
		}
	}
	for _, id := range sortedIdentifiers(filters) {
		if !filters[id].used {
			return nil, mongoerr.New(mongoerr.FailedToParse, "The array filter for identifier '%s' was not used in the update %s",
				id, valueText(bson.Value{Type: bson.TypeDocument, Data: u}))
		}
	}
	root.seal()
	return root, nil
}

// parseFields adds one operator's fields to the tree; parse is nil for $rename.
func parseFields(root *updateNode, fields []byte, parse func(string, bson.Value, Env) (fieldOperator, error),
	filters map[string]*arrayFilter, env Env) error {
	it := bson.Elements(fields)
	for it.Next() {
		path, v := string(it.Key()), it.Value()
		if err := checkUpdatePath(path); err != nil {
			return err
		}
		if strings.Count(path, ".")+1+valueDepth(v) > bson.MaxDepth {
			return tooDeep()
		}
		if parse == nil {
			if err := parseRenameInto(root, path, v, filters); err != nil {
				return err
			}
			continue
		}
		op, err := parse(path, v, env)
		if err != nil {
			return err
		}
		if err := root.insert(path, op, filters); err != nil {
			return err
		}
	}
	return nil
}

func parseRenameInto(root *updateNode, from string, to bson.Value, filters map[string]*arrayFilter) error {
	r, err := parseRename(from, to)
	if err != nil {
		return err
	}
	if err := root.insert(r.from, renameSource{r}, filters); err != nil {
		return err
	}
	return root.insert(r.to, renameTarget{r}, filters)
}

// checkUpdatePath refuses paths that no update can have: empty parts, more than one "$", and "$" at the start.
func checkUpdatePath(path string) error {
	if path == "" {
		return mongoerr.New(mongoerr.EmptyFieldName, "An empty update path is not valid.")
	}
	parts := strings.Split(path, ".")
	positional := 0
	for _, part := range parts {
		if part == "" {
			return mongoerr.New(mongoerr.EmptyFieldName, "The update path '%s' contains an empty field name, which is not allowed.", path)
		}
		if part == "$" {
			positional++
		}
	}
	if positional > 1 {
		return mongoerr.New(mongoerr.BadValue, "Too many positional (i.e. '$') elements found in path '%s'", path)
	}
	if parts[0] == "$" {
		return mongoerr.New(mongoerr.BadValue, "Cannot have positional (i.e. '$') element in the first position in path '%s'", path)
	}
	return nil
}

// arrayFilter is one document of arrayFilters.
type arrayFilter struct {
	identifier string
	filter     *Filter
	used       bool // by a path; only while the update is compiled
}

// selects reports whether the filter matches an array's element.
func (f *arrayFilter) selects(ap *applier, element bson.Value) (bool, error) {
	ap.wrapped = wrapValue(ap.wrapped[:0], f.identifier, element)
	return f.filter.Match(ap.wrapped)
}

// parseArrayFilters compiles arrayFilters by identifier.
func parseArrayFilters(docs []bson.Document, env Env) (map[string]*arrayFilter, error) {
	if len(docs) == 0 {
		return nil, nil
	}
	filters := make(map[string]*arrayFilter, len(docs))
	for _, doc := range docs {
		filter, err := ParseFilter(doc, env)
		if err != nil {
			return nil, err
		}
		id, err := filterIdentifier(doc)
		if err != nil {
			return nil, err
		}
		if id == "" {
			return nil, mongoerr.New(mongoerr.FailedToParse, "Cannot use an expression without a top-level field name in arrayFilters")
		}
		if filters[id] != nil {
			return nil, mongoerr.New(mongoerr.FailedToParse, "Found multiple array filters with the same top-level field name %s", id)
		}
		filters[id] = &arrayFilter{identifier: id, filter: filter}
	}
	return filters, nil
}

// filterIdentifier returns the one top-level field that an array filter is about, "" if it names none.
func filterIdentifier(doc bson.Document) (string, error) {
	found := ""
	it := bson.Elements(doc)
	for it.Next() {
		ids, err := elementIdentifiers(string(it.Key()), it.Value())
		if err != nil {
			return "", err
		}
		for _, id := range ids {
			if found != "" && id != found {
				return "", mongoerr.New(mongoerr.FailedToParse,
					"Error parsing array filter :: caused by :: Expected a single top-level field name, found '%s' and '%s'", found, id)
			}
			found = id
		}
	}
	return found, nil
}

// elementIdentifiers returns the identifiers that one element of an array filter names.
func elementIdentifiers(key string, v bson.Value) ([]string, error) {
	switch key {
	case "$and", "$or", "$nor":
		var ids []string
		for it := bson.Elements(v.Data); it.Next(); {
			id, err := filterIdentifier(it.Value().Data)
			if err != nil {
				return nil, err
			}
			if id != "" {
				ids = append(ids, id)
			}
		}
		return ids, nil
	case "$comment":
		return nil, nil
	}
	if strings.HasPrefix(key, "$") {
		return nil, mongoerr.New(mongoerr.BadValue, "Error parsing array filter :: caused by :: %s is not allowed in this context", key)
	}
	id, _, _ := strings.Cut(key, ".")
	if !isAlphanumeric(id) {
		return nil, mongoerr.New(mongoerr.BadValue, "Error parsing array filter :: caused by :: The top-level field name must be an "+
			"alphanumeric string beginning with a lowercase letter, found '%s'", id)
	}
	return []string{id}, nil
}

// isAlphanumeric reports whether id is a lowercase letter followed by letters and digits.
func isAlphanumeric(id string) bool {
	for i, c := range []byte(id) {
		lower := c >= 'a' && c <= 'z'
		if !lower && (i == 0 || (c < 'A' || c > 'Z') && (c < '0' || c > '9')) {
			return false
		}
	}
	return id != ""
}

func sortedIdentifiers(filters map[string]*arrayFilter) []string {
	ids := make([]string, 0, len(filters))
	for id := range filters {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
