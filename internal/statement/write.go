package statement

import (
	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// MaxBatch is the largest number of statements in one write command
// (https://www.mongodb.com/docs/manual/reference/limits/#mongodb-limit-Write-Command-Batch-Limit-Size).
const MaxBatch = 100_000

// Insert is the insert command.
type Insert struct {
	Generic
	Collection string
	Documents  []bson.Document
	Ordered    bool
}

var insertSchema = newSchema("insert",
	spec[Insert]{"documents", false, documents(func(i *Insert) *[]bson.Document { return &i.Documents })},
	spec[Insert]{"ordered", false, boolean(func(i *Insert) *bool { return &i.Ordered })},
	spec[Insert]{"bypassDocumentValidation", false, harmless[Insert]},
)

// ParseInsert reads an insert command.
func ParseInsert(req *backend.Request) (*Insert, error) {
	i := &Insert{Generic: Generic{StmtID: -1}, Ordered: true}
	if err := parseWriteOn(insertSchema, req.Body, i, &i.Generic, &i.Collection); err != nil {
		return nil, err
	}
	var err error
	if i.Documents, err = statements("insert", "documents", i.Documents, req.Sequences); err != nil {
		return nil, err
	}
	return i, nil
}

// Update is the update command.
type Update struct {
	Generic
	Collection string
	Updates    []UpdateOne
	Let        bson.Document
	Ordered    bool
}

// UpdateOne is one statement of an update command.
type UpdateOne struct {
	Raw          bson.Document // the statement as it came
	Filter       bson.Document
	Update       bson.Value // a document or a pipeline
	ArrayFilters []bson.Document
	Hint         bson.Value
	Constants    bson.Document // c, with a pipeline
	Multi        bool
	Upsert       bool
}

// updateCommand is Update with the statements still raw.
type updateCommand struct {
	Update
	raw []bson.Document
}

var updateSchema = newSchema("update",
	spec[updateCommand]{"updates", false, documents(func(u *updateCommand) *[]bson.Document { return &u.raw })},
	spec[updateCommand]{"ordered", false, boolean(func(u *updateCommand) *bool { return &u.Ordered })},
	spec[updateCommand]{"let", false, document(func(u *updateCommand) *bson.Document { return &u.Let })},
	spec[updateCommand]{"bypassDocumentValidation", false, harmless[updateCommand]},
)

var updateOneSchema = newSchema("update.updates",
	spec[UpdateOne]{"q", true, document(func(u *UpdateOne) *bson.Document { return &u.Filter })},
	spec[UpdateOne]{"u", true, updateValue(func(u *UpdateOne) *bson.Value { return &u.Update })},
	spec[UpdateOne]{"c", false, document(func(u *UpdateOne) *bson.Document { return &u.Constants })},
	spec[UpdateOne]{"multi", false, boolean(func(u *UpdateOne) *bool { return &u.Multi })},
	spec[UpdateOne]{"upsert", false, boolean(func(u *UpdateOne) *bool { return &u.Upsert })},
	spec[UpdateOne]{"arrayFilters", false, documents(func(u *UpdateOne) *[]bson.Document { return &u.ArrayFilters })},
	spec[UpdateOne]{"hint", false, hint(func(u *UpdateOne) *bson.Value { return &u.Hint })},
	spec[UpdateOne]{"collation", false, unsupported[UpdateOne](isEmptyDocument)},
)

// updateValue takes a document or a pipeline.
func updateValue[T any](at func(*T) *bson.Value) func(string, *T, bson.Value) error {
	return func(name string, to *T, v bson.Value) error {
		if v.Type != bson.TypeDocument && v.Type != bson.TypeArray {
			return mongoerr.New(mongoerr.FailedToParse, "Update argument must be either an object or an array ('%s' is %s)",
				name, bson.TypeName(v.Type))
		}
		*at(to) = v
		return nil
	}
}

// ParseUpdate reads an update command and its statements.
func ParseUpdate(req *backend.Request) (*Update, error) {
	c := &updateCommand{Update: Update{Generic: Generic{StmtID: -1}, Ordered: true}}
	if err := parseWriteOn(updateSchema, req.Body, c, &c.Generic, &c.Collection); err != nil {
		return nil, err
	}
	raw, err := statements("update", "updates", c.raw, req.Sequences)
	if err != nil {
		return nil, err
	}
	c.Updates = make([]UpdateOne, len(raw))
	for i, doc := range raw {
		c.Updates[i].Raw = doc
		if err := updateOneSchema.rest(bson.Elements(doc), &c.Updates[i], nil); err != nil {
			return nil, err
		}
	}
	return &c.Update, nil
}

// Delete is the delete command.
type Delete struct {
	Generic
	Collection string
	Deletes    []DeleteOne
	Let        bson.Document
	Ordered    bool
}

// DeleteOne is one statement of a delete command.
type DeleteOne struct {
	Raw    bson.Document // the statement as it came
	Filter bson.Document
	Hint   bson.Value
	Limit  int64 // 0: all, 1: one
}

// deleteCommand is Delete with the statements still raw.
type deleteCommand struct {
	Delete
	raw []bson.Document
}

var deleteSchema = newSchema("delete",
	spec[deleteCommand]{"deletes", false, documents(func(d *deleteCommand) *[]bson.Document { return &d.raw })},
	spec[deleteCommand]{"ordered", false, boolean(func(d *deleteCommand) *bool { return &d.Ordered })},
	spec[deleteCommand]{"let", false, document(func(d *deleteCommand) *bson.Document { return &d.Let })},
)

var deleteOneSchema = newSchema("delete.deletes",
	spec[DeleteOne]{"q", true, document(func(d *DeleteOne) *bson.Document { return &d.Filter })},
	spec[DeleteOne]{"limit", true, func(name string, d *DeleteOne, v bson.Value) error {
		n, err := wholeNumber(name, v)
		if err == nil && n != 0 && n != 1 {
			err = mongoerr.New(mongoerr.FailedToParse, "The limit field in delete objects must be 0 or 1. Got %d", n)
		}
		d.Limit = n
		return err
	}},
	spec[DeleteOne]{"hint", false, hint(func(d *DeleteOne) *bson.Value { return &d.Hint })},
	spec[DeleteOne]{"collation", false, unsupported[DeleteOne](isEmptyDocument)},
)

// ParseDelete reads a delete command and its statements.
func ParseDelete(req *backend.Request) (*Delete, error) {
	c := &deleteCommand{Delete: Delete{Generic: Generic{StmtID: -1}, Ordered: true}}
	if err := parseWriteOn(deleteSchema, req.Body, c, &c.Generic, &c.Collection); err != nil {
		return nil, err
	}
	raw, err := statements("delete", "deletes", c.raw, req.Sequences)
	if err != nil {
		return nil, err
	}
	c.Deletes = make([]DeleteOne, len(raw))
	for i, doc := range raw {
		c.Deletes[i].Raw = doc
		if err := deleteOneSchema.rest(bson.Elements(doc), &c.Deletes[i], nil); err != nil {
			return nil, err
		}
	}
	return &c.Delete, nil
}

// FindAndModify is the findAndModify command.
type FindAndModify struct {
	Generic
	Collection   string
	Query        bson.Document
	Sort         bson.Document
	Fields       bson.Document
	Update       bson.Value // Type 0 with Remove
	ArrayFilters []bson.Document
	Hint         bson.Value
	Let          bson.Document
	Remove       bool
	New          bool
	Upsert       bool
}

var findAndModifySchema = newSchema("findAndModify",
	spec[FindAndModify]{"query", false, document(func(f *FindAndModify) *bson.Document { return &f.Query })},
	spec[FindAndModify]{"sort", false, document(func(f *FindAndModify) *bson.Document { return &f.Sort })},
	spec[FindAndModify]{"fields", false, document(func(f *FindAndModify) *bson.Document { return &f.Fields })},
	spec[FindAndModify]{"update", false, updateValue(func(f *FindAndModify) *bson.Value { return &f.Update })},
	spec[FindAndModify]{"remove", false, boolean(func(f *FindAndModify) *bool { return &f.Remove })},
	spec[FindAndModify]{"new", false, boolean(func(f *FindAndModify) *bool { return &f.New })},
	spec[FindAndModify]{"upsert", false, boolean(func(f *FindAndModify) *bool { return &f.Upsert })},
	spec[FindAndModify]{"arrayFilters", false, documents(func(f *FindAndModify) *[]bson.Document { return &f.ArrayFilters })},
	spec[FindAndModify]{"hint", false, hint(func(f *FindAndModify) *bson.Value { return &f.Hint })},
	spec[FindAndModify]{"let", false, document(func(f *FindAndModify) *bson.Document { return &f.Let })},
	spec[FindAndModify]{"bypassDocumentValidation", false, harmless[FindAndModify]},
	spec[FindAndModify]{"collation", false, unsupported[FindAndModify](isEmptyDocument)},
)

// ParseFindAndModify reads a findAndModify (or findandmodify) command.
func ParseFindAndModify(body bson.Document) (*FindAndModify, error) {
	f := &FindAndModify{Generic: Generic{StmtID: -1}}
	if err := parseWriteOn(findAndModifySchema, body, f, &f.Generic, &f.Collection); err != nil {
		return nil, err
	}
	switch {
	case f.Remove && f.Update.Type != 0:
		return nil, mongoerr.New(mongoerr.FailedToParse, "Cannot specify both an update and remove=true")
	case !f.Remove && f.Update.Type == 0:
		return nil, mongoerr.New(mongoerr.FailedToParse, "Either an update or remove=true must be specified")
	case f.Remove && f.Upsert:
		return nil, mongoerr.New(mongoerr.FailedToParse, "Cannot specify both upsert=true and remove=true")
	case f.Remove && f.New:
		return nil, mongoerr.New(mongoerr.FailedToParse,
			"Cannot specify both new=true and remove=true; 'remove' always returns the deleted document")
	}
	return f, nil
}

// statements returns a write command's statements, from its body or from its document sequence, and checks their number.
func statements(command, name string, inBody []bson.Document, seqs []backend.Sequence) ([]bson.Document, error) {
	for _, s := range seqs {
		if s.Name != name {
			return nil, mongoerr.New(mongoerr.IDLUnknownField, "BSON field '%s.%s' is an unknown field.", command, s.Name)
		}
		if inBody != nil {
			return nil, mongoerr.New(mongoerr.IDLDuplicateField, "BSON field '%s.%s' is a duplicate field", command, name)
		}
		inBody = s.Documents
	}
	if n := len(inBody); n < 1 || n > MaxBatch {
		return nil, mongoerr.New(mongoerr.InvalidLength,
			"Write batch sizes must be between 1 and %d. Got %d operations.", MaxBatch, n)
	}
	return inBody, nil
}
