package query

import (
	"strings"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// setField is $set, and $currentDate, whose value is known when the update is compiled.
type setField struct{ value bson.Value }

func (o setField) change(_ *applier, dst []byte, old bson.Value) ([]byte, bson.Type, outcome, error) {
	if sameValue(old, o.value) {
		return dst, old.Type, kept, nil
	}
	return append(dst, o.value.Data...), o.value.Type, written, nil
}

func (o setField) create(_ *applier, dst []byte) ([]byte, bson.Type, outcome, error) {
	return append(dst, o.value.Data...), o.value.Type, written, nil
}

func (o setField) creates(*applier) (bool, error) { return true, nil }
func (o setField) blocked() blockage              { return cannotCreate }

// setOnInsert is $setOnInsert: $set where an upsert makes a document, nothing elsewhere.
type setOnInsert struct{ setField }

func (o setOnInsert) change(ap *applier, dst []byte, old bson.Value) ([]byte, bson.Type, outcome, error) {
	if !ap.insert {
		return dst, old.Type, kept, nil
	}
	return o.setField.change(ap, dst, old)
}

func (o setOnInsert) create(ap *applier, dst []byte) ([]byte, bson.Type, outcome, error) {
	if !ap.insert {
		return dst, bson.TypeNull, kept, nil
	}
	return o.setField.create(ap, dst)
}

func (o setOnInsert) creates(ap *applier) (bool, error) { return ap.insert, nil }

// unsetField is $unset.
type unsetField struct{}

func (o unsetField) change(ap *applier, dst []byte, old bson.Value) ([]byte, bson.Type, outcome, error) {
	if !ap.direct {
		return dst, old.Type, removed, nil
	}
	// An element of an array becomes null: the others keep their indexes.
	if old.Type == bson.TypeNull {
		return dst, old.Type, kept, nil
	}
	return dst, bson.TypeNull, written, nil
}

func (o unsetField) create(_ *applier, dst []byte) ([]byte, bson.Type, outcome, error) {
	return dst, bson.TypeNull, kept, nil
}

func (o unsetField) creates(*applier) (bool, error) { return false, nil }
func (o unsetField) blocked() blockage              { return ignored }

// rename is what both ends of a $rename share.
type rename struct {
	from, to  string
	fromParts []string
}

// source returns the value to move, and whether there is one; a path through an array, or through a value that can't hold it, is an error.
func (r *rename) source(ap *applier) (bson.Value, bool, error) {
	v := bson.Value{Type: bson.TypeDocument, Data: ap.doc}
	for i, part := range r.fromParts {
		switch v.Type {
		case bson.TypeDocument:
			next, ok := bson.Get(v.Data, part)
			if !ok {
				return bson.Value{}, false, nil
			}
			v = next
		case bson.TypeArray:
			return r.arraySource(ap, v, i)
		default:
			return v, false, mongoerr.New(mongoerr.PathNotViable, "cannot use the part (%s of %s) to traverse the element ({%s})",
				r.fromParts[i-1], r.from, elementText(r.fromParts[i-1], v))
		}
	}
	return v, true, nil
}

// arraySource refuses to rename an element of the array v, which the first at parts of the path reach; an element that isn't there is no source.
func (r *rename) arraySource(ap *applier, v bson.Value, at int) (bson.Value, bool, error) {
	index := arrayIndex(r.fromParts[at])
	if index < 0 {
		return v, false, mongoerr.New(mongoerr.PathNotViable, "cannot use the part (%s of %s) to traverse the element ({%s})",
			r.fromParts[at-1], r.from, elementText(r.fromParts[at-1], v))
	}
	it := bson.Elements(v.Data)
	for i := 0; it.Next(); i++ {
		if i == index {
			return v, false, mongoerr.New(mongoerr.BadValue, "The source field cannot be an array element, '%s' in doc with %s has an array field called '%s'",
				r.from, idText(ap.doc), r.fromParts[at-1])
		}
	}
	return v, false, nil
}

// renameTarget is the leaf where a $rename puts the value.
type renameTarget struct{ *rename }

func (o renameTarget) change(ap *applier, dst []byte, old bson.Value) ([]byte, bson.Type, outcome, error) {
	v, ok, err := o.value(ap)
	if err != nil || !ok || bson.Compare(v, old) == 0 {
		return dst, old.Type, kept, err
	}
	return append(dst, v.Data...), v.Type, written, nil
}

func (o renameTarget) create(ap *applier, dst []byte) ([]byte, bson.Type, outcome, error) {
	v, ok, err := o.value(ap)
	if err != nil || !ok {
		return dst, bson.TypeNull, kept, err
	}
	return append(dst, v.Data...), v.Type, written, nil
}

// value returns the source's value if it can be put where the applier stands.
func (o renameTarget) value(ap *applier) (bson.Value, bool, error) {
	v, ok, err := o.source(ap)
	if err != nil || !ok {
		return v, false, err
	}
	if ap.arrays > 0 {
		parts := strings.Split(o.to, ".")
		return v, false, mongoerr.New(mongoerr.BadValue, "The destination field cannot be an array element, '%s' in doc with %s has an array field called '%s'",
			o.to, idText(ap.doc), parts[ap.arrayAt(parts)])
	}
	if len(ap.path)+valueDepth(v) > bson.MaxDepth {
		return v, false, tooDeep()
	}
	return v, true, nil
}

// arrayAt returns which of the parts on the way is the first array of the document.
func (ap *applier) arrayAt(parts []string) int {
	doc := []byte(ap.doc)
	for i, part := range parts {
		v, ok := bson.Get(doc, part)
		if !ok || v.Type != bson.TypeDocument {
			return i
		}
		doc = v.Data
	}
	return len(parts) - 1
}

func (o renameTarget) creates(ap *applier) (bool, error) {
	_, ok, err := o.source(ap)
	return ok, err
}

func (o renameTarget) blocked() blockage { return cannotCreate }

// renameSource is the leaf where a $rename takes the value away.
type renameSource struct{ *rename }

func (o renameSource) change(ap *applier, dst []byte, old bson.Value) ([]byte, bson.Type, outcome, error) {
	_, ok, err := o.source(ap)
	if err != nil || !ok {
		return dst, old.Type, kept, err
	}
	return dst, old.Type, removed, nil
}

func (o renameSource) create(_ *applier, dst []byte) ([]byte, bson.Type, outcome, error) {
	return dst, bson.TypeNull, kept, nil
}

func (o renameSource) creates(*applier) (bool, error) { return false, nil }
func (o renameSource) blocked() blockage              { return ignored }

// parseRename compiles {$rename: {from: to}}.
func parseRename(from string, to bson.Value) (*rename, error) {
	target, ok := stringOf(to)
	if !ok || to.Type != bson.TypeString {
		return nil, mongoerr.New(mongoerr.BadValue, "The 'to' field for $rename must be a string: %s", elementText(from, to))
	}
	if strings.ContainsRune(target, 0) {
		return nil, mongoerr.New(mongoerr.BadValue, "The 'to' field for $rename cannot contain an embedded null byte")
	}
	if err := checkUpdatePath(target); err != nil {
		return nil, err
	}
	switch {
	case from == target:
		return nil, mongoerr.New(mongoerr.BadValue, "The source and target field for $rename must differ: %s", elementText(from, to))
	case strings.HasPrefix(from, target+"."), strings.HasPrefix(target, from+"."):
		return nil, mongoerr.New(mongoerr.BadValue, "The source and target field for $rename must not be on the same path: %s", elementText(from, to))
	case isDynamic(from):
		return nil, mongoerr.New(mongoerr.BadValue, "The source field for $rename may not be dynamic: %s", from)
	case isDynamic(target):
		return nil, mongoerr.New(mongoerr.BadValue, "The destination field for $rename may not be dynamic: %s", target)
	}
	return &rename{from: from, to: target, fromParts: strings.Split(from, ".")}, nil
}

// isDynamic reports whether a path has a positional part.
func isDynamic(path string) bool {
	for _, part := range strings.Split(path, ".") {
		if part == "$" || isIdentifier(part) {
			return true
		}
	}
	return false
}

// parseCurrentDate compiles {$currentDate: {path: true | {$type: "date" | "timestamp"}}}; the time is the command's.
func parseCurrentDate(v bson.Value, env Env) (bson.Value, error) {
	date := bson.Value{Type: bson.TypeDateTime, Data: appendUint64(nil, uint64(env.NowMillis))}
	switch v.Type {
	case bson.TypeBoolean:
		return date, nil
	case bson.TypeDocument:
	default:
		return date, mongoerr.New(mongoerr.BadValue, "%s is not valid type for $currentDate. Please use a boolean ('true') or a $type expression "+
			"({$type: 'timestamp/date'}).", bson.TypeName(v.Type))
	}
	kind := ""
	it := bson.Elements(v.Data)
	for it.Next() {
		if string(it.Key()) != "$type" {
			return date, mongoerr.New(mongoerr.BadValue, "Unrecognized $currentDate option: %s", it.Key())
		}
		kind, _ = stringOf(it.Value())
	}
	switch kind {
	case "date":
		return date, nil
	case "timestamp":
		return timestampOf(env), nil
	}
	return date, mongoerr.New(mongoerr.BadValue,
		"The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: 'date'}}}")
}

// timestampOf is the command's time as a timestamp with the ordinal 1.
func timestampOf(env Env) bson.Value {
	return bson.Value{Type: bson.TypeTimestamp, Data: appendUint64(nil, uint64(env.NowMillis/1000)<<32|1)}
}
