package query

import (
	"bytes"
	"context"
	"strconv"

	"oxbow/internal/bson"
	"oxbow/internal/memory"
	"oxbow/internal/mongoerr"
)

// lookupStage is $lookup: by equality of two fields, by a pipeline, or by both
// (https://www.mongodb.com/docs/manual/reference/operator/aggregation/lookup/).
type lookupStage struct {
	from    string
	as      []string
	local   []string // nil: no equality
	foreign string
	vars    []lookupVar
	stages  bson.Array // the pipeline; nil: none
	sub     *Pipeline  // the pipeline compiled without the values of its variables
	opts    PipelineOptions
}

// lookupVar is a variable of let.
type lookupVar struct {
	name string
	of   *Expression
}

func failedLookup(format string, args ...any) error {
	return mongoerr.New(mongoerr.FailedToParse, format, args...)
}

func parseLookup(arg bson.Value, opts *PipelineOptions) (stage, error) {
	if arg.Type != bson.TypeDocument {
		return nil, failedLookup("the $lookup stage specification must be an object, but found %s", bson.TypeName(arg.Type))
	}
	l := &lookupStage{opts: *opts}
	l.opts.depth++
	texts := map[string]string{}
	var let bson.Document
	it := bson.Elements(arg.Data)
	for it.Next() {
		v := it.Value()
		switch key := string(it.Key()); key {
		case "pipeline":
			if v.Type != bson.TypeArray {
				return nil, failedLookup("$lookup argument 'pipeline' must be an array, but found %s", bson.TypeName(v.Type))
			}
			l.stages = v.Data
		case "let":
			if v.Type != bson.TypeDocument {
				return nil, failedLookup("$lookup argument 'let: %s' must be an object, is type %s", show(v), bson.TypeName(v.Type))
			}
			let = v.Data
		case "from", "as", "localField", "foreignField":
			if v.Type != bson.TypeString {
				return nil, failedLookup("$lookup argument '%s' must be a string, but found %s", elementText(key, v), bson.TypeName(v.Type))
			}
			texts[key] = textOf(v)
		default:
			return nil, failedLookup("unknown argument to $lookup: %s", key)
		}
	}
	return l, l.compile(texts, let)
}

func (l *lookupStage) compile(texts map[string]string, let bson.Document) (err error) {
	var ok, haveAs, haveLocal, haveForeign bool
	var as, local string
	l.from, ok = texts["from"]
	as, haveAs = texts["as"]
	local, haveLocal = texts["localField"]
	l.foreign, haveForeign = texts["foreignField"]
	switch {
	case !ok:
		return failedLookup("must specify 'from' field for a $lookup")
	case !haveAs:
		return failedLookup("must specify 'as' field for a $lookup")
	case haveLocal != haveForeign:
		return failedLookup("$lookup requires both or neither of 'localField' and 'foreignField' to be specified")
	case !haveLocal && l.stages == nil:
		return failedLookup("$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified")
	case let != nil && l.stages == nil:
		return failedLookup("$lookup with a 'let' argument must also specify 'pipeline'")
	case l.opts.Lookup == nil:
		return mongoerr.New(mongoerr.CommandNotSupported, "the pipeline stage $lookup is not supported here")
	}
	if l.as, err = splitFieldPath(as); err != nil {
		return err
	}
	if haveLocal {
		if l.local, err = splitFieldPath(local); err != nil {
			return err
		}
		if _, err = splitFieldPath(l.foreign); err != nil {
			return err
		}
	}
	it := bson.Elements(let)
	for it.Next() {
		v := lookupVar{name: string(it.Key())}
		if err := checkVariableName(v.name); err != nil {
			return err
		}
		if v.of, err = ParseExpression(it.Value(), l.opts.Env); err != nil {
			return err
		}
		l.vars = append(l.vars, v)
	}
	if l.stages == nil {
		return nil
	}
	opts := l.opts
	for _, v := range l.vars {
		opts.Env.unbound = append(opts.Env.unbound[:len(opts.Env.unbound):len(opts.Env.unbound)], v.name)
	}
	l.sub, err = ParsePipeline(l.stages, opts)
	return err
}

func (*lookupStage) name() string { return "$lookup" }

func (l *lookupStage) run(in Documents) Documents {
	return &joined{in: in, stage: l, memory: l.opts.Memory.Account(memory.Queries)}
}

// joined is a running $lookup.
type joined struct {
	in      Documents
	stage   *lookupStage
	scratch Scratch
	array   []byte         // the documents found
	memory  memory.Account // of array, and of dst, which holds it once more
	dst     []byte
	cached  bool // array holds what every document gets
}

func (j *joined) Close() error {
	j.memory.Close()
	j.array, j.dst, j.cached = nil, nil, false
	return j.in.Close()
}

func (j *joined) Next(ctx context.Context) (bson.Document, error) {
	doc, err := j.in.Next(ctx)
	if err != nil || doc == nil {
		return nil, err
	}
	l := j.stage
	if !j.cached {
		if err := j.find(ctx, doc); err != nil {
			return nil, err
		}
		j.cached = l.local == nil && len(l.vars) == 0
	}
	j.dst = appendAt(j.dst[:0], doc, l.as, bson.Value{Type: bson.TypeArray, Data: j.array})
	return j.dst, nil
}

// find fills array with the documents that doc is joined with.
func (j *joined) find(ctx context.Context, doc bson.Document) (err error) {
	l := j.stage
	var find Head
	rest := &Pipeline{}
	if l.sub != nil {
		sub := l.sub
		if len(l.vars) > 0 {
			if sub, find.Let, err = j.bound(ctx, doc); err != nil {
				return err
			}
		} else {
			find.Let = letExpressions(l.opts.Env.Let)
		}
		let := find.Let
		find, rest = sub.Head()
		if bytes.Contains(find.Filter, []byte("$expr\x00")) {
			find.Let = let
		}
	}
	if l.local != nil {
		find.Filter = bothFilters(j.equality(doc), find.Filter)
	}
	found, err := l.opts.Lookup(ctx, l.from, find)
	if err != nil {
		return err
	}
	out := rest.Run(found)
	defer func() {
		if closed := out.Close(); err == nil {
			err = closed
		}
	}()
	return j.collect(ctx, out)
}

// collect reads all documents into array. Together they may be as large as one document.
func (j *joined) collect(ctx context.Context, out Documents) error {
	j.array = begin(j.array[:0])
	for i := 0; ; i++ {
		doc, err := out.Next(ctx)
		if err != nil {
			return err
		}
		if doc == nil {
			break
		}
		if size := 2 * int64(len(j.array)+len(doc)); size > j.memory.Used() {
			if err := j.memory.Set(size); err != nil {
				return err
			}
		}
		j.array = append(appendIndexedHeader(j.array, bson.TypeDocument, i), doc...)
		if len(j.array) > bson.MaxInternalSize {
			return mongoerr.New(4568, "Total size of documents in %s matching pipeline's $lookup stage exceeds %d bytes", j.stage.from, bson.MaxInternalSize)
		}
	}
	j.array = finish(j.array, 0)
	return nil
}

// bound compiles the pipeline with the values that its variables have for doc, so that its head can use indexes and routes; let are the
// variables as a command names them.
func (j *joined) bound(ctx context.Context, doc bson.Document) (sub *Pipeline, let bson.Document, err error) {
	l := j.stage
	j.scratch.ctx = ctx
	values := begin(nil)
	for _, v := range l.vars {
		value, err := v.of.Eval(doc, &j.scratch)
		if err != nil {
			return nil, nil, err
		}
		if value.Type == 0 {
			value.Type = bson.TypeUndefined
		}
		values = appendField(values, v.name, value)
	}
	it := bson.Elements(l.opts.Env.Let)
outer:
	for it.Next() {
		for _, v := range l.vars {
			if v.name == string(it.Key()) {
				continue outer
			}
		}
		values = append(values, it.Raw()...)
	}
	opts := l.opts
	opts.Env.Let = finish(values, 0)
	sub, err = ParsePipeline(l.stages, opts)
	return sub, letExpressions(opts.Env.Let), err
}

// letExpressions turns values of variables into the let of a command, where each is an expression.
func letExpressions(values bson.Document) bson.Document {
	if len(values) <= len(emptyDocument) {
		return nil
	}
	dst := begin(nil)
	it := bson.Elements(values)
	for it.Next() {
		if it.Value().Type == bson.TypeUndefined {
			dst = append(appendHeader(dst, bson.TypeString, it.Key()), "\x09\x00\x00\x00$$REMOVE\x00"...)
			continue
		}
		dst = wrapValue(appendHeader(dst, bson.TypeDocument, it.Key()), "$literal", it.Value())
	}
	return finish(dst, 0)
}

// equality returns the filter that the foreign documents of doc match: one of the values at the local path, null where there are none.
func (j *joined) equality(doc bson.Document) bson.Document {
	field := j.stage.foreign
	values := localValues(nil, doc, j.stage.local)
	var patterns []bson.Document // $in would take these for regular expressions to match
	others := begin(nil)
	n := 0
	for _, v := range values {
		switch v.Type {
		case bson.TypeRegex:
			patterns = append(patterns, operatorFilter(field, "$eq", v))
			continue
		case bson.TypeUndefined:
			v = bson.Null
		}
		others = append(appendIndexedHeader(others, v.Type, n), v.Data...)
		n++
	}
	switch {
	case len(values) == 0:
		return operatorFilter(field, "$eq", bson.Null)
	case len(values) == 1 && patterns != nil:
		return patterns[0]
	}
	in := operatorFilter(field, "$in", bson.Value{Type: bson.TypeArray, Data: finish(others, 0)})
	if patterns == nil {
		return in
	}
	return junctionOf("$or", append(patterns, in))
}

// localValues appends the values at a path: those of every document in the arrays on the way, and the elements of an array at its end.
func localValues(values []bson.Value, doc []byte, path []string) []bson.Value {
	v, ok := bson.Get(doc, path[0])
	path = path[1:]
	switch {
	case !ok:
	case len(path) == 0 && v.Type == bson.TypeArray:
		values = append(values, arrayValues(v.Data)...)
	case len(path) == 0:
		values = append(values, v)
	case v.Type == bson.TypeDocument:
		values = localValues(values, v.Data, path)
	case v.Type == bson.TypeArray:
		for it := bson.Elements(v.Data); it.Next(); {
			if e := it.Value(); e.Type == bson.TypeDocument {
				values = localValues(values, e.Data, path)
			}
		}
	}
	return values
}

// operatorFilter returns {field: {operator: v}}.
func operatorFilter(field, operator string, v bson.Value) bson.Document {
	return wrapValue(nil, field, bson.Value{Type: bson.TypeDocument, Data: wrapValue(nil, operator, v)})
}

// bothFilters returns the filter that matches what both do; nil matches everything.
func bothFilters(a, b bson.Document) bson.Document {
	if b == nil {
		return a
	}
	if a == nil {
		return b
	}
	return junctionOf("$and", []bson.Document{a, b})
}

// junctionOf returns {operator: [filters]}.
func junctionOf(operator string, filters []bson.Document) bson.Document {
	array := begin(nil)
	for i, f := range filters {
		array = append(appendHeader(array, bson.TypeDocument, strconv.AppendInt(nil, int64(i), 10)), f...)
	}
	return wrapValue(nil, operator, bson.Value{Type: bson.TypeArray, Data: finish(array, 0)})
}
