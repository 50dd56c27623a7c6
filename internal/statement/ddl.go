package statement

import (
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// Create is the create command; Options are the fields that listCollections gives back.
type Create struct {
	Generic
	Collection string
	Options    bson.Document
}

var createSchema = newSchema("create",
	spec[Create]{"capped", false, unsupported[Create](isFalse)},
	spec[Create]{"size", false, harmless[Create]}, // of a capped collection: without capped it says nothing
	spec[Create]{"max", false, harmless[Create]},
	spec[Create]{"autoIndexId", false, unsupported[Create](func(v bson.Value) bool { return !isFalse(v) })},
	spec[Create]{"idIndex", false, harmless[Create]},
	spec[Create]{"storageEngine", false, unsupported[Create](isEmptyDocument)},
	spec[Create]{"indexOptionDefaults", false, unsupported[Create](isEmptyDocument)},
	spec[Create]{"validator", false, unsupported[Create](isEmptyDocument)},
	spec[Create]{"validationLevel", false, unsupported[Create](nil)},
	spec[Create]{"validationAction", false, unsupported[Create](nil)},
	spec[Create]{"viewOn", false, unsupported[Create](nil)},
	spec[Create]{"pipeline", false, unsupported[Create](nil)},
	spec[Create]{"collation", false, unsupported[Create](isEmptyDocument)},
	spec[Create]{"timeseries", false, unsupported[Create](nil)},
	spec[Create]{"expireAfterSeconds", false, unsupported[Create](nil)},
	spec[Create]{"clusteredIndex", false, unsupported[Create](nil)},
	spec[Create]{"changeStreamPreAndPostImages", false, unsupported[Create](nil)},
	spec[Create]{"encryptedFields", false, unsupported[Create](nil)},
)

// ParseCreate reads a create command.
func ParseCreate(body bson.Document) (*Create, error) {
	c := &Create{Generic: Generic{StmtID: -1}}
	if err := parseWriteOn(createSchema, body, c, &c.Generic, &c.Collection); err != nil {
		return nil, err
	}
	return c, nil
}

// Drop is the drop command.
type Drop struct {
	Generic
	Collection string
}

var dropSchema = newSchema[Drop]("drop")

// ParseDrop reads a drop command.
func ParseDrop(body bson.Document) (*Drop, error) {
	d := &Drop{Generic: Generic{StmtID: -1}}
	if err := parseOn(dropSchema, body, d, &d.Generic, &d.Collection); err != nil {
		return nil, err
	}
	return d, nil
}

// DropDatabase is the dropDatabase command.
type DropDatabase struct{ Generic }

var dropDatabaseSchema = newSchema[DropDatabase]("dropDatabase")

// ParseDropDatabase reads a dropDatabase command.
func ParseDropDatabase(body bson.Document) (*DropDatabase, error) {
	d := &DropDatabase{Generic: Generic{StmtID: -1}}
	if err := dropDatabaseSchema.parse(body, d, &d.Generic, anything); err != nil {
		return nil, err
	}
	return d, CheckDatabase(d.Database)
}

// anything accepts a command's own argument that says nothing: 1 by custom.
func anything(bson.Value) error { return nil }

// CreateIndexes is the createIndexes command.
type CreateIndexes struct {
	Generic
	Collection string
	Indexes    []bson.Document
}

var createIndexesSchema = newSchema("createIndexes",
	spec[CreateIndexes]{"indexes", true, documents(func(c *CreateIndexes) *[]bson.Document { return &c.Indexes })},
	spec[CreateIndexes]{"commitQuorum", false, harmless[CreateIndexes]},
	spec[CreateIndexes]{"ignoreUnknownIndexOptions", false, unsupported[CreateIndexes](isFalse)},
)

// ParseCreateIndexes reads a createIndexes command; the specifications stay raw.
func ParseCreateIndexes(body bson.Document) (*CreateIndexes, error) {
	c := &CreateIndexes{Generic: Generic{StmtID: -1}}
	if err := parseWriteOn(createIndexesSchema, body, c, &c.Generic, &c.Collection); err != nil {
		return nil, err
	}
	if len(c.Indexes) == 0 {
		return nil, mongoerr.New(mongoerr.BadValue, "Must specify at least one index to create")
	}
	for _, spec := range c.Indexes {
		if _, ok := bson.Get(spec, "key"); !ok {
			return nil, mongoerr.New(mongoerr.FailedToParse, "The 'key' field is a required property of an index specification")
		}
	}
	return c, nil
}

// DropIndexes is the dropIndexes command. Index is a name, "*", a key pattern, or an array of names.
type DropIndexes struct {
	Generic
	Collection string
	Index      bson.Value
}

var dropIndexesSchema = newSchema("dropIndexes",
	spec[DropIndexes]{"index", true, func(name string, d *DropIndexes, v bson.Value) error {
		switch v.Type {
		case bson.TypeString, bson.TypeDocument, bson.TypeArray:
			d.Index = v
			return nil
		}
		return wrongType(name, v, "string, object or array")
	}})

// ParseDropIndexes reads a dropIndexes (or deleteIndexes) command.
func ParseDropIndexes(body bson.Document) (*DropIndexes, error) {
	d := &DropIndexes{Generic: Generic{StmtID: -1}}
	if err := parseOn(dropIndexesSchema, body, d, &d.Generic, &d.Collection); err != nil {
		return nil, err
	}
	return d, nil
}

// ListIndexes is the listIndexes command.
type ListIndexes struct {
	Generic
	Collection string
	BatchSize  int64 // -1: not given
}

var listIndexesSchema = newSchema("listIndexes",
	spec[ListIndexes]{"cursor", false, batchSizeIn(func(l *ListIndexes) *int64 { return &l.BatchSize })})

// ParseListIndexes reads a listIndexes command.
func ParseListIndexes(body bson.Document) (*ListIndexes, error) {
	l := &ListIndexes{Generic: Generic{StmtID: -1}, BatchSize: -1}
	if err := parseOn(listIndexesSchema, body, l, &l.Generic, &l.Collection); err != nil {
		return nil, err
	}
	return l, nil
}

// batchSizeIn reads the batchSize out of a cursor document.
func batchSizeIn[T any](at func(*T) *int64) func(string, *T, bson.Value) error {
	inner := newSchema("cursor", spec[T]{"batchSize", false, count(0, at)})
	return func(name string, to *T, v bson.Value) error {
		if v.Type != bson.TypeDocument {
			return wrongType(name, v, "object")
		}
		return inner.rest(bson.Elements(v.Data), to, nil)
	}
}

// ListCollections is the listCollections command. Partitions is Oxbow's own option ("showPartitions"): physical collections are listed
// as well.
type ListCollections struct {
	Generic
	Filter     bson.Document
	NameOnly   bool
	Partitions bool
	BatchSize  int64 // -1: not given
}

var listCollectionsSchema = newSchema("listCollections",
	spec[ListCollections]{"filter", false, document(func(l *ListCollections) *bson.Document { return &l.Filter })},
	spec[ListCollections]{"nameOnly", false, boolean(func(l *ListCollections) *bool { return &l.NameOnly })},
	spec[ListCollections]{"authorizedCollections", false, harmless[ListCollections]},
	spec[ListCollections]{"showPartitions", false, boolean(func(l *ListCollections) *bool { return &l.Partitions })},
	spec[ListCollections]{"cursor", false, batchSizeIn(func(l *ListCollections) *int64 { return &l.BatchSize })},
)

// ParseListCollections reads a listCollections command.
func ParseListCollections(body bson.Document) (*ListCollections, error) {
	l := &ListCollections{Generic: Generic{StmtID: -1}, BatchSize: -1}
	if err := listCollectionsSchema.parse(body, l, &l.Generic, anything); err != nil {
		return nil, err
	}
	return l, CheckDatabase(l.Database)
}

// ListDatabases is the listDatabases command. Partitions is Oxbow's own option ("showPartitions").
type ListDatabases struct {
	Generic
	Filter     bson.Document
	NameOnly   bool
	Partitions bool
	Authorized *bool // authorizedDatabases: only those that the client may do something with; nil: not given
}

var listDatabasesSchema = newSchema("listDatabases",
	spec[ListDatabases]{"filter", false, document(func(l *ListDatabases) *bson.Document { return &l.Filter })},
	spec[ListDatabases]{"nameOnly", false, boolean(func(l *ListDatabases) *bool { return &l.NameOnly })},
	spec[ListDatabases]{"authorizedDatabases", false, authorizedDatabases},
	spec[ListDatabases]{"showPartitions", false, boolean(func(l *ListDatabases) *bool { return &l.Partitions })},
)

func authorizedDatabases(name string, to *ListDatabases, v bson.Value) error {
	if v.Type == bson.TypeNull {
		return nil
	}
	b, err := lenientBool(name, v)
	to.Authorized = &b
	return err
}

// ParseListDatabases reads a listDatabases command.
func ParseListDatabases(body bson.Document) (*ListDatabases, error) {
	l := &ListDatabases{Generic: Generic{StmtID: -1}}
	if err := listDatabasesSchema.parse(body, l, &l.Generic, anything); err != nil {
		return nil, err
	}
	if l.Database != "admin" {
		return nil, mongoerr.New(mongoerr.Unauthorized, "listDatabases may only be run against the admin database.")
	}
	return l, nil
}

// CollStats is the collStats command.
type CollStats struct {
	Generic
	Collection string
	Scale      int64
	Partitions bool // "showPartitions", Oxbow's own: figures of each partition as well
}

var collStatsSchema = newSchema("collStats",
	spec[CollStats]{"scale", false, count(1, func(c *CollStats) *int64 { return &c.Scale })},
	spec[CollStats]{"showPartitions", false, boolean(func(c *CollStats) *bool { return &c.Partitions })},
	spec[CollStats]{"verbose", false, harmless[CollStats]},
)

// ParseCollStats reads a collStats (or collstats) command.
func ParseCollStats(body bson.Document) (*CollStats, error) {
	c := &CollStats{Generic: Generic{StmtID: -1}, Scale: 1}
	if err := parseOn(collStatsSchema, body, c, &c.Generic, &c.Collection); err != nil {
		return nil, err
	}
	return c, nil
}

// DBStats is the dbStats command.
type DBStats struct {
	Generic
	Scale int64
}

var dbStatsSchema = newSchema("dbStats",
	spec[DBStats]{"scale", false, count(1, func(d *DBStats) *int64 { return &d.Scale })},
	spec[DBStats]{"freeStorage", false, harmless[DBStats]},
)

// ParseDBStats reads a dbStats (or dbstats) command.
func ParseDBStats(body bson.Document) (*DBStats, error) {
	d := &DBStats{Generic: Generic{StmtID: -1}, Scale: 1}
	if err := dbStatsSchema.parse(body, d, &d.Generic, anything); err != nil {
		return nil, err
	}
	return d, CheckDatabase(d.Database)
}

// Validate is the validate command.
type Validate struct {
	Generic
	Collection  string
	Full        bool
	Background  bool // changes nothing: writers go on during every validation
	Conformance bool // checkBSONConformance
}

var validateSchema = newSchema("validate",
	spec[Validate]{"full", false, boolean(func(v *Validate) *bool { return &v.Full })},
	spec[Validate]{"background", false, boolean(func(v *Validate) *bool { return &v.Background })},
	spec[Validate]{"scandata", false, harmless[Validate]}, // sent by pymongo, without effect since MongoDB 3.6
	spec[Validate]{"repair", false, unsupported[Validate](isFalse)},
	spec[Validate]{"metadata", false, unsupported[Validate](isFalse)},
	spec[Validate]{"checkBSONConformance", false, boolean(func(v *Validate) *bool { return &v.Conformance })},
)

// ParseValidate reads a validate command.
func ParseValidate(body bson.Document) (*Validate, error) {
	v := &Validate{Generic: Generic{StmtID: -1}}
	if err := parseOn(validateSchema, body, v, &v.Generic, &v.Collection); err != nil {
		return nil, err
	}
	if v.Background && v.Full {
		return nil, mongoerr.New(mongoerr.InvalidOptions,
			"Running the validate command with both { background: true } and { full: true } is not supported.")
	}
	return v, nil
}

// RenameCollection is the renameCollection command.
type RenameCollection struct {
	Generic
	From, To   string // full namespaces
	DropTarget bool
}

var renameSchema = newSchema("renameCollection",
	spec[RenameCollection]{"to", true, text(func(r *RenameCollection) *string { return &r.To })},
	spec[RenameCollection]{"dropTarget", false, boolean(func(r *RenameCollection) *bool { return &r.DropTarget })},
)

// ParseRenameCollection reads a renameCollection command.
func ParseRenameCollection(body bson.Document) (*RenameCollection, error) {
	r := &RenameCollection{Generic: Generic{StmtID: -1}}
	err := renameSchema.parse(body, r, &r.Generic, func(v bson.Value) error {
		s, ok := v.StringValueOK()
		if !ok {
			return wrongType("renameCollection.renameCollection", v, "string")
		}
		r.From = s
		return nil
	})
	if err != nil {
		return nil, err
	}
	if r.Database != "admin" {
		return nil, mongoerr.New(mongoerr.Unauthorized, "renameCollection may only be run against the admin database.")
	}
	return r, nil
}
