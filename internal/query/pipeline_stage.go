package query

import (
	"slices"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// builtStages are those of parseStage.
var builtStages = []string{
	"$addFields", "$count", "$group", "$limit", "$lookup", "$match", "$project", "$replaceRoot", "$replaceWith", "$set", "$skip", "$sort",
	"$sortByCount", "$unset", "$unwind",
}

// atlasStages are MongoDB's stages that its servers refuse themselves outside of MongoDB's own hosting.
var atlasStages = []string{"$listSearchIndexes", "$search", "$searchMeta", "$vectorSearch"}

// unbuiltStages are MongoDB's stages that are refused by name.
var unbuiltStages = []string{
	"$bucket", "$bucketAuto", "$changeStream", "$changeStreamSplitLargeEvent", "$collStats", "$currentOp", "$densify", "$documents",
	"$facet", "$fill", "$geoNear", "$graphLookup", "$indexStats", "$listLocalSessions", "$listSampledQueries", "$listSessions",
	"$merge", "$out", "$planCacheStats", "$redact", "$sample", "$setWindowFields", "$shardedDataDistribution", "$unionWith",
}

// isStage reports whether MongoDB has a stage of that name, built here or not.
func isStage(name string) bool {
	return slices.Contains(builtStages, name) || slices.Contains(unbuiltStages, name) || slices.Contains(atlasStages, name)
}

func unknownStage(name string) error {
	return mongoerr.New(mongoerr.PipelineUnknownStage, "Unrecognized pipeline stage name: '%s'", name)
}

// parseStage compiles a stage; those that MongoDB defines by others become several.
func parseStage(name string, arg bson.Value, opts *PipelineOptions) ([]stage, error) {
	switch name {
	case "$sortByCount":
		return parseSortByCount(arg, opts)
	case "$match":
		return single(parseMatch(arg, opts))
	case "$project", "$addFields", "$set", "$unset":
		return single(parseProject(name, arg, opts))
	case "$replaceRoot", "$replaceWith":
		return single(parseReplaceRoot(name, arg, opts))
	case "$sort":
		return single(parseSortStage(arg, opts))
	case "$limit":
		return single(parseLimit(arg))
	case "$skip":
		return single(parseSkip(arg))
	case "$count":
		return single(parseCount(arg))
	case "$group":
		return single(parseGroup(arg, opts))
	case "$unwind":
		return single(parseUnwind(arg))
	case "$lookup":
		return single(parseLookup(arg, opts))
	}
	switch {
	case name == "$collStats": // as the first one it never comes here
		return nil, mongoerr.New(40602, "%s is only valid as the first stage in a pipeline", name)
	case slices.Contains(unbuiltStages, name):
		return nil, mongoerr.New(mongoerr.CommandNotSupported, "the pipeline stage %s is not supported", name)
	case slices.Contains(atlasStages, name):
		return nil, mongoerr.New(6047401, "%s stage is only allowed on MongoDB Atlas", name)
	}
	return nil, unknownStage(name)
}

func single(s stage, err error) ([]stage, error) {
	if err != nil {
		return nil, err
	}
	return []stage{s}, nil
}

// matchStage is $match.
type matchStage struct {
	filter *Filter
	raw    bson.Document
}

func parseMatch(arg bson.Value, opts *PipelineOptions) (stage, error) {
	if arg.Type != bson.TypeDocument {
		return nil, mongoerr.New(15959, "the match filter must be an expression in an object")
	}
	f, err := ParseFilter(arg.Data, opts.Env)
	return &matchStage{f, arg.Data}, err
}

func (*matchStage) name() string { return "$match" }

func (m *matchStage) run(in Documents) Documents {
	return &mapped{in: in, apply: func(_ *Scratch, dst []byte, doc bson.Document) (bson.Document, []byte, error) {
		ok, err := m.filter.Match(doc)
		if err != nil || !ok {
			return nil, dst, err
		}
		return doc, dst, nil
	}}
}

// projectStage is $project, $addFields, $set and $unset.
type projectStage struct {
	stageName  string
	projection *Projection
}

func parseProject(name string, arg bson.Value, opts *PipelineOptions) (stage, error) {
	p := &projectStage{stageName: name}
	var err error
	switch {
	case name == "$unset":
		p.projection, err = parseUnset(arg, opts.Env)
	case name == "$project" && arg.Type != bson.TypeDocument:
		err = mongoerr.New(mongoerr.ProjectNotObject, "$project specification must be an object")
	case name == "$project":
		p.projection, err = parseStageProjection(arg.Data, opts.Env)
	case arg.Type != bson.TypeDocument:
		err = mongoerr.New(mongoerr.AddFieldsNotObject, "%s specification stage must be an object, got %s", name, bson.TypeName(arg.Type))
	default:
		p.projection, err = parseAddFields(name, arg.Data, opts.Env)
	}
	return p, err
}

func (p *projectStage) name() string { return p.stageName }

func (p *projectStage) run(in Documents) Documents {
	return &mapped{in: in, apply: func(_ *Scratch, dst []byte, doc bson.Document) (bson.Document, []byte, error) {
		dst, err := p.projection.Apply(dst[:0], doc)
		return dst, dst, err
	}}
}

// replaceRootStage is $replaceRoot and $replaceWith.
type replaceRootStage struct {
	stageName string
	root      *Expression
}

func parseReplaceRoot(name string, arg bson.Value, opts *PipelineOptions) (stage, error) {
	if name == "$replaceRoot" {
		var err error
		if arg, err = newRootOf(arg); err != nil {
			return nil, err
		}
	}
	e, err := ParseExpression(arg, opts.Env)
	return &replaceRootStage{name, e}, err
}

func (r *replaceRootStage) name() string { return r.stageName }

func (r *replaceRootStage) run(in Documents) Documents {
	return &mapped{in: in, apply: func(s *Scratch, dst []byte, doc bson.Document) (bson.Document, []byte, error) {
		v, err := r.root.Eval(doc, s)
		if err == nil && v.Type != bson.TypeDocument {
			err = errNewRoot(v, doc)
		}
		return v.Data, dst, err
	}}
}

// errNewRoot is the error for a new root that is no document.
func errNewRoot(v bson.Value, doc bson.Document) error {
	return mongoerr.New(mongoerr.NewRootNotObject,
		"'newRoot' expression must evaluate to an object, but resulting value was: %s. Type of resulting value: '%s'. Input document: %s",
		show(v), bson.TypeName(v.Type), show(bson.Value{Type: bson.TypeDocument, Data: doc}))
}

// limitStage is $limit.
type limitStage struct{ n int64 }

func parseLimit(arg bson.Value) (stage, error) {
	n, err := stageNumber("$limit", 5107201, arg)
	if err == nil && n <= 0 {
		err = mongoerr.New(15958, "the limit must be positive")
	}
	return &limitStage{n}, err
}

// stageNumber reads the argument of $limit and $skip, which is a whole number that is not negative.
func stageNumber(name string, code mongoerr.Code, arg bson.Value) (int64, error) {
	invalid := func(why string) error {
		return mongoerr.New(code, "invalid argument to %s stage: %s: %s: %s", name, why, name, show(arg))
	}
	if !bson.IsNumber(arg.Type) {
		return 0, invalid("Expected a number in")
	}
	n, ok := wholeNumber(arg)
	switch {
	case !ok:
		return 0, invalid("Expected an integer")
	case n < 0:
		return 0, invalid("Expected a non-negative number in")
	}
	return n, nil
}

func (*limitStage) name() string { return "$limit" }

func (l *limitStage) run(in Documents) Documents { return &limited{Documents: in, left: l.n} }

// skipStage is $skip.
type skipStage struct{ n int64 }

func parseSkip(arg bson.Value) (stage, error) {
	n, err := stageNumber("$skip", 5107200, arg)
	return &skipStage{n}, err
}

func (*skipStage) name() string { return "$skip" }

func (s *skipStage) run(in Documents) Documents { return &skipped{Documents: in, left: s.n} }
