package query

import (
	"context"
	"strings"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// unwindStage is $unwind: a document for each element of an array
// (https://www.mongodb.com/docs/manual/reference/operator/aggregation/unwind/).
type unwindStage struct {
	path     []string
	index    []string // where the element's index goes; nil: nowhere
	preserve bool     // documents without elements are kept
}

func parseUnwind(arg bson.Value) (stage, error) {
	u := &unwindStage{}
	path := arg
	switch arg.Type {
	case bson.TypeString:
	case bson.TypeDocument:
		path = bson.Value{}
		it := bson.Elements(arg.Data)
		for it.Next() {
			v := it.Value()
			switch string(it.Key()) {
			case "path":
				if path = v; v.Type != bson.TypeString {
					return nil, mongoerr.New(28808, "expected a string as the path for $unwind stage, got %s", bson.TypeName(v.Type))
				}
			case "preserveNullAndEmptyArrays":
				if v.Type != bson.TypeBoolean {
					return nil, mongoerr.New(28809, "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage, got %s", bson.TypeName(v.Type))
				}
				u.preserve = Truth(v)
			case "includeArrayIndex":
				if err := u.parseIndex(v); err != nil {
					return nil, err
				}
			default:
				return nil, mongoerr.New(28811, "unrecognized option to $unwind stage: %s", it.Key())
			}
		}
		if path.Type == 0 {
			return nil, mongoerr.New(28812, "no path specified to $unwind stage")
		}
	default:
		return nil, mongoerr.New(15981, "expected either a string or an object as specification for $unwind stage, got %s", bson.TypeName(arg.Type))
	}
	text := textOf(path)
	if text == "" {
		return nil, mongoerr.New(28812, "no path specified to $unwind stage")
	}
	if !strings.HasPrefix(text, "$") {
		return nil, mongoerr.New(28818, "path option to $unwind stage should be prefixed with a '$': %s", text)
	}
	var err error
	u.path, err = splitFieldPath(text[1:])
	return u, err
}

func (u *unwindStage) parseIndex(v bson.Value) (err error) {
	if v.Type != bson.TypeString || textOf(v) == "" {
		return mongoerr.New(28810, "expected a non-empty string for the includeArrayIndex  option to $unwind stage, got %s", bson.TypeName(v.Type))
	}
	text := textOf(v)
	if text[0] == '$' {
		return mongoerr.New(28822, "includeArrayIndex option to $unwind stage should not be prefixed with a '$': %s", text)
	}
	u.index, err = splitFieldPath(text)
	return err
}

func (*unwindStage) name() string { return "$unwind" }

func (u *unwindStage) run(in Documents) Documents { return &unwound{in: in, stage: u} }

// unwound is a running $unwind.
type unwound struct {
	in    Documents
	stage *unwindStage
	doc   bson.Document // the document whose elements are being given; its owner keeps it until its next Next
	it    bson.Iter
	i     int64
	buf   [2][]byte
	s     Scratch
}

func (u *unwound) Close() error { return u.in.Close() }

// Next looks from time to time whether it has been interrupted: a few $unwind behind each other make more documents of one than anybody waits for, and
// nothing below them is asked meanwhile.
func (u *unwound) Next(ctx context.Context) (bson.Document, error) {
	u.s.ctx = ctx
	for {
		if u.doc != nil && u.it.Next() {
			i := u.i
			u.i++
			if err := u.s.step(); err != nil {
				return nil, err
			}
			u.s.reset(nil, 0)
			return u.with(u.it.Value(), u.s.int64(i)), nil
		}
		doc, err := u.in.Next(ctx)
		if u.doc = nil; err != nil || doc == nil {
			return nil, err
		}
		v := nested(doc, u.stage.path)
		if v.Type == bson.TypeArray && len(v.Data) > 5 {
			u.doc, u.it, u.i = doc, bson.Elements(v.Data), 0
			continue
		}
		switch {
		case v.Type != bson.TypeArray && !nullish(v):
		case !u.stage.preserve:
			continue
		case v.Type == bson.TypeArray:
			u.doc = doc
			doc = u.with(bson.Value{}, bson.Null)
			u.doc = nil
			return doc, nil
		}
		if u.stage.index == nil {
			return doc, nil
		}
		u.buf[0] = appendAt(u.buf[0][:0], doc, u.stage.index, bson.Null)
		return u.buf[0], nil
	}
}

// with builds the current document with v in place of the array.
func (u *unwound) with(v, index bson.Value) bson.Document {
	u.buf[0] = appendAt(u.buf[0][:0], u.doc, u.stage.path, v)
	if u.stage.index == nil {
		return u.buf[0]
	}
	u.buf[1] = appendAt(u.buf[1][:0], u.buf[0], u.stage.index, index)
	return u.buf[1]
}

// nested returns the value at a path through documents only; missing where there is none.
func nested(doc []byte, path []string) bson.Value {
	for {
		v, _ := bson.Get(doc, path[0])
		if path = path[1:]; len(path) == 0 {
			return v
		}
		if v.Type != bson.TypeDocument {
			return bson.Value{}
		}
		doc = v.Data
	}
}

// appendAt appends doc with the value at a path set, or taken out if v is missing. What is no document on the way is replaced by one.
func appendAt(dst []byte, doc []byte, path []string, v bson.Value) []byte {
	if len(path) == 1 {
		return appendWith(dst, doc, path[0], v)
	}
	start := len(dst)
	dst = begin(dst)
	found := false
	it := bson.Elements(doc)
	for it.Next() {
		if found || string(it.Key()) != path[0] {
			dst = append(dst, it.Raw()...)
			continue
		}
		found = true
		inner := it.Value()
		switch {
		case inner.Type == bson.TypeDocument:
			dst = appendAt(appendHeader(dst, bson.TypeDocument, it.Key()), inner.Data, path[1:], v)
		case v.Type == 0:
			dst = append(dst, it.Raw()...)
		default:
			dst = appendAt(appendHeader(dst, bson.TypeDocument, it.Key()), emptyDocument, path[1:], v)
		}
	}
	if !found && v.Type != 0 {
		dst = appendAt(appendHeader(dst, bson.TypeDocument, []byte(path[0])), emptyDocument, path[1:], v)
	}
	return finish(dst, start)
}
