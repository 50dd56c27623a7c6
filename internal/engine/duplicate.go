package engine

import (
	"bytes"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// duplicateAt is the error for an entry whose fields another entry has too.
func (t *Table) duplicateAt(ix *index, key []byte, at int) error {
	documentKey := append(bytes.Clone(t.documentPrefix), key[at:]...)
	doc, closer, err := t.db.pebble.Get(documentKey)
	if err != nil {
		return fmt.Errorf("read document of duplicate: %w", err)
	}
	defer closer.Close()
	return t.duplicate(ix, key[:at], doc)
}

// duplicate is MongoDB's error for a document whose entry has the fields of another document's.
func (t *Table) duplicate(ix *index, fields []byte, doc bson.Document) error {
	pattern, _ := bson.Get(ix.Spec, "key")
	return duplicateError(t.Name(), ix.Name, pattern.Data, ix.valueOf(fields, doc))
}

// duplicateID is the error for an _id that is there.
func (t *Table) duplicateID(id bson.Value) error {
	pattern, _ := bson.Get(idIndex.Spec, "key")
	return duplicateError(t.Name(), idIndexName, pattern.Data, bsoncore.BuildDocument(nil, bsoncore.AppendValueElement(nil, "_id", id)))
}

func duplicateError(name Name, index string, pattern, value bson.Document) error {
	e := mongoerr.New(mongoerr.DuplicateKey, "E11000 duplicate key error collection: %s index: %s dup key: %s", name, index, appendShell(nil, value))
	info := bsoncore.AppendDocumentElement(nil, "keyPattern", pattern)
	e.Info = bsoncore.BuildDocument(nil, bsoncore.AppendDocumentElement(info, "keyValue", value))
	return e
}
