package statement

import (
	"strings"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// Find is the find command (https://www.mongodb.com/docs/manual/reference/command/find/).
type Find struct {
	Generic
	Collection          string
	Filter              bson.Document
	Projection          bson.Document
	Sort                bson.Document
	Hint                bson.Value
	Min, Max            bson.Document
	Let                 bson.Document
	Skip                int64
	Limit               int64 // 0: none
	BatchSize           int64 // -1: not given, MongoDB's first batch of 101 documents
	SingleBatch         bool
	NoCursorTimeout     bool
	AllowPartialResults bool
}

var findSchema = newSchema("find",
	spec[Find]{"filter", false, document(func(f *Find) *bson.Document { return &f.Filter })},
	spec[Find]{"projection", false, document(func(f *Find) *bson.Document { return &f.Projection })},
	spec[Find]{"sort", false, document(func(f *Find) *bson.Document { return &f.Sort })},
	spec[Find]{"hint", false, hint(func(f *Find) *bson.Value { return &f.Hint })},
	spec[Find]{"min", false, document(func(f *Find) *bson.Document { return &f.Min })},
	spec[Find]{"max", false, document(func(f *Find) *bson.Document { return &f.Max })},
	spec[Find]{"let", false, document(func(f *Find) *bson.Document { return &f.Let })},
	spec[Find]{"skip", false, count(0, func(f *Find) *int64 { return &f.Skip })},
	spec[Find]{"limit", false, count(0, func(f *Find) *int64 { return &f.Limit })},
	spec[Find]{"batchSize", false, count(0, func(f *Find) *int64 { return &f.BatchSize })},
	spec[Find]{"singleBatch", false, boolean(func(f *Find) *bool { return &f.SingleBatch })},
	spec[Find]{"noCursorTimeout", false, boolean(func(f *Find) *bool { return &f.NoCursorTimeout })},
	spec[Find]{"allowPartialResults", false, boolean(func(f *Find) *bool { return &f.AllowPartialResults })},
	spec[Find]{"allowDiskUse", false, harmless[Find]},
	spec[Find]{"oplogReplay", false, harmless[Find]},
	spec[Find]{"returnKey", false, unsupported[Find](isFalse)},
	spec[Find]{"showRecordId", false, unsupported[Find](isFalse)},
	spec[Find]{"tailable", false, unsupported[Find](isFalse)},
	spec[Find]{"awaitData", false, unsupported[Find](isFalse)},
	spec[Find]{"collation", false, unsupported[Find](isEmptyDocument)},
)

// ParseFind reads a find command.
func ParseFind(body bson.Document) (*Find, error) {
	f := &Find{Generic: Generic{StmtID: -1}, BatchSize: -1}
	if err := parseOn(findSchema, body, f, &f.Generic, &f.Collection); err != nil {
		return nil, err
	}
	return f, nil
}

// GetMore is the getMore command.
type GetMore struct {
	Generic
	Cursor     int64
	Collection string
	BatchSize  int64 // 0: none
}

var getMoreSchema = newSchema("getMore",
	spec[GetMore]{"collection", true, text(func(g *GetMore) *string { return &g.Collection })},
	spec[GetMore]{"batchSize", false, count(0, func(g *GetMore) *int64 { return &g.BatchSize })},
	spec[GetMore]{"term", false, harmless[GetMore]},
	spec[GetMore]{"lastKnownCommittedOpTime", false, harmless[GetMore]},
)

// ParseGetMore reads a getMore command.
func ParseGetMore(body bson.Document) (*GetMore, error) {
	g := &GetMore{Generic: Generic{StmtID: -1}}
	err := getMoreSchema.parse(body, g, &g.Generic, func(v bson.Value) error {
		if v.Type != bson.TypeInt64 {
			return wrongType("getMore.getMore", v, "long")
		}
		g.Cursor = v.Int64()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// KillCursors is the killCursors command.
type KillCursors struct {
	Generic
	Collection string
	Cursors    []int64
}

var killCursorsSchema = newSchema("killCursors",
	spec[KillCursors]{"cursors", true, func(name string, k *KillCursors, v bson.Value) error {
		if v.Type != bson.TypeArray {
			return wrongType(name, v, "array")
		}
		it := bson.Elements(v.Data)
		for it.Next() {
			if it.Value().Type != bson.TypeInt64 {
				return wrongType(name+"."+string(it.Key()), it.Value(), "long")
			}
			k.Cursors = append(k.Cursors, it.Value().Int64())
		}
		return nil
	}},
)

// ParseKillCursors reads a killCursors command.
func ParseKillCursors(body bson.Document) (*KillCursors, error) {
	k := &KillCursors{Generic: Generic{StmtID: -1}}
	// Cursors of listCollections and the like lie on "$cmd.listCollections", which is no collection's name.
	err := killCursorsSchema.parse(body, k, &k.Generic, func(v bson.Value) (err error) {
		k.Collection, err = collectionName(v)
		return err
	})
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(k.Collection, "$cmd.") {
		err = CheckCollection(k.Database, k.Collection)
	}
	return k, err
}

// Count is the count command.
type Count struct {
	Generic
	Collection string
	Query      bson.Document
	Hint       bson.Value
	Skip       int64
	Limit      int64 // 0: none
}

var countSchema = newSchema("count",
	spec[Count]{"query", false, document(func(c *Count) *bson.Document { return &c.Query })},
	spec[Count]{"hint", false, hint(func(c *Count) *bson.Value { return &c.Hint })},
	spec[Count]{"skip", false, count(0, func(c *Count) *int64 { return &c.Skip })},
	spec[Count]{"limit", false, signedLimit},
	spec[Count]{"fields", false, harmless[Count]}, // MongoDB ignores it as well: very old clients send it
	spec[Count]{"collation", false, unsupported[Count](isEmptyDocument)},
)

// signedLimit takes a negative limit for its absolute value, as MongoDB's count does.
func signedLimit(name string, c *Count, v bson.Value) error {
	n, err := wholeNumber(name, v)
	if err != nil {
		return err
	}
	if n < 0 {
		n = -n
	}
	c.Limit = n
	return nil
}

// ParseCount reads a count command.
func ParseCount(body bson.Document) (*Count, error) {
	c := &Count{Generic: Generic{StmtID: -1}}
	if err := parseOn(countSchema, body, c, &c.Generic, &c.Collection); err != nil {
		return nil, err
	}
	return c, nil
}

// Distinct is the distinct command.
type Distinct struct {
	Generic
	Collection string
	Key        string
	Query      bson.Document
	Hint       bson.Value
}

var distinctSchema = newSchema("distinct",
	spec[Distinct]{"key", true, text(func(d *Distinct) *string { return &d.Key })},
	spec[Distinct]{"query", false, document(func(d *Distinct) *bson.Document { return &d.Query })},
	spec[Distinct]{"hint", false, hint(func(d *Distinct) *bson.Value { return &d.Hint })},
	spec[Distinct]{"collation", false, unsupported[Distinct](isEmptyDocument)},
)

// ParseDistinct reads a distinct command.
func ParseDistinct(body bson.Document) (*Distinct, error) {
	d := &Distinct{Generic: Generic{StmtID: -1}}
	if err := parseOn(distinctSchema, body, d, &d.Generic, &d.Collection); err != nil {
		return nil, err
	}
	return d, nil
}

// Aggregate is the aggregate command.
type Aggregate struct {
	Generic
	Collection string // "" for {aggregate: 1}, on a database
	Pipeline   bson.Array
	BatchSize  int64 // -1: not given
	Hint       bson.Value
	Let        bson.Document
	Explain    bool
}

var aggregateSchema = newSchema("aggregate",
	spec[Aggregate]{"pipeline", true, array(func(a *Aggregate) *bson.Array { return &a.Pipeline })},
	spec[Aggregate]{"cursor", false, cursorOptions},
	spec[Aggregate]{"hint", false, hint(func(a *Aggregate) *bson.Value { return &a.Hint })},
	spec[Aggregate]{"let", false, document(func(a *Aggregate) *bson.Document { return &a.Let })},
	spec[Aggregate]{"explain", false, boolean(func(a *Aggregate) *bool { return &a.Explain })},
	spec[Aggregate]{"allowDiskUse", false, harmless[Aggregate]},
	spec[Aggregate]{"bypassDocumentValidation", false, harmless[Aggregate]},
	spec[Aggregate]{"collation", false, unsupported[Aggregate](isEmptyDocument)},
)

var cursorSchema = newSchema("cursor",
	spec[Aggregate]{"batchSize", false, count(0, func(a *Aggregate) *int64 { return &a.BatchSize })})

func cursorOptions(name string, a *Aggregate, v bson.Value) error {
	if v.Type != bson.TypeDocument {
		return wrongType(name, v, "object")
	}
	return cursorSchema.rest(bson.Elements(v.Data), a, nil)
}

// ParseAggregate reads an aggregate command.
func ParseAggregate(body bson.Document) (*Aggregate, error) {
	a := &Aggregate{Generic: Generic{StmtID: -1}, BatchSize: -1}
	named := false
	err := aggregateSchema.parse(body, a, &a.Generic, func(v bson.Value) error {
		if n, ok := v.AsInt64OK(); ok && bson.IsNumber(v.Type) {
			if n != 1 {
				return mongoerr.New(mongoerr.FailedToParse, "Invalid command format: the 'aggregate' field must specify a collection name or 1")
			}
			return nil
		}
		name, err := collectionName(v)
		a.Collection, named = name, true
		return err
	})
	if err == nil && named {
		err = CheckCollection(a.Database, a.Collection)
	}
	if err != nil {
		return nil, err
	}
	_, hasCursor := bson.Get(body, "cursor")
	if !hasCursor && !a.Explain {
		return nil, mongoerr.New(mongoerr.FailedToParse, "The 'cursor' option is required, except for aggregate with the explain argument")
	}
	return a, nil
}

// Explain is the explain command: another command and how much to tell about it.
type Explain struct {
	Generic
	Command   bson.Document
	Verbosity string // queryPlanner, executionStats or allPlansExecution
}

var explainSchema = newSchema("explain",
	spec[Explain]{"verbosity", false, text(func(e *Explain) *string { return &e.Verbosity })})

// ParseExplain reads an explain command.
func ParseExplain(body bson.Document) (*Explain, error) {
	e := &Explain{Generic: Generic{StmtID: -1}, Verbosity: "allPlansExecution"}
	err := explainSchema.parse(body, e, &e.Generic, func(v bson.Value) error {
		if v.Type != bson.TypeDocument {
			return wrongType("explain.explain", v, "object")
		}
		e.Command = v.Data
		return nil
	})
	if err != nil {
		return nil, err
	}
	switch e.Verbosity {
	case "queryPlanner", "executionStats", "allPlansExecution":
		return e, nil
	}
	return nil, mongoerr.New(mongoerr.BadValue,
		"Enumeration value '%s' for field 'explain.verbosity' is not a valid value.", e.Verbosity)
}

// hint takes an index name or a key pattern; an empty document is none.
func hint[T any](at func(*T) *bson.Value) func(string, *T, bson.Value) error {
	return func(name string, to *T, v bson.Value) error {
		switch {
		case v.Type == bson.TypeString, v.Type == bson.TypeDocument && len(v.Data) > 5:
			*at(to) = v
		case isEmptyDocument(v):
		default:
			return mongoerr.New(mongoerr.FailedToParse, "Hint must be a string or an object ('%s' is %s)", name, bson.TypeName(v.Type))
		}
		return nil
	}
}

// parseOn parses a command whose own argument is a collection's name, and checks the namespace.
func parseOn[T any](s *schema[T], body bson.Document, to *T, g *Generic, collection *string) error {
	err := s.parse(body, to, g, func(v bson.Value) error {
		name, err := collectionName(v)
		*collection = name
		return err
	})
	if err != nil {
		return err
	}
	return CheckCollection(g.Database, *collection)
}

// parseWriteOn is parseOn for a command that writes to the collection or makes it.
func parseWriteOn[T any](s *schema[T], body bson.Document, to *T, g *Generic, collection *string) error {
	if err := parseOn(s, body, to, g, collection); err != nil {
		return err
	}
	return CheckWritable(g.Database, *collection)
}
