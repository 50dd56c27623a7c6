package embedded

import (
	"strconv"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/engine"
	"oxbow/internal/mongoerr"
	"oxbow/internal/statement"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// validate checks a table and reports as MongoDB does (https://www.mongodb.com/docs/manual/reference/command/validate/).
func (b *Backend) validate(op operation, req *backend.Request) (bson.Document, error) {
	v, err := statement.ParseValidate(req.Body)
	if err != nil {
		return nil, err
	}
	op, cancel, err := op.reading(&v.Generic)
	if err != nil {
		return nil, err
	}
	defer cancel()
	name := engine.Name{Database: v.Database, Collection: v.Collection}
	table, exists := b.db.Table(name)
	if !exists {
		return nil, mongoerr.New(mongoerr.NamespaceNotFound, "Collection '%s' does not exist to validate.", namespace(name))
	}
	result, err := table.Validate(op)
	if err != nil {
		return nil, err
	}
	return newReply(func(dst []byte) []byte { return appendValidation(dst, name, table.Indexes(), result) }), nil
}

func appendValidation(dst []byte, name engine.Name, indexes []engine.Index, r engine.ValidateResult) []byte {
	valid := len(r.Errors) == 0
	dst = bsoncore.AppendStringElement(dst, "ns", namespace(name))
	dst = bsoncore.AppendInt32Element(dst, "nInvalidDocuments", 0)
	dst = bsoncore.AppendInt32Element(dst, "nNonCompliantDocuments", 0)
	dst = appendNumber(dst, "nrecords", r.Documents)
	dst = bsoncore.AppendInt32Element(dst, "nIndexes", int32(len(indexes)))
	dst = appendDocument(dst, "keysPerIndex", func(dst []byte) []byte {
		for _, x := range indexes {
			dst = appendNumber(dst, x.Name, r.KeysPerIndex[x.Name])
		}
		return dst
	})
	dst = bsoncore.AppendBooleanElement(dst, "valid", valid)
	dst = bsoncore.AppendBooleanElement(dst, "repaired", false)
	dst = appendEmptyArray(dst, "warnings")
	at, dst := bsoncore.AppendArrayElementStart(dst, "errors")
	for i, message := range r.Errors {
		dst = bsoncore.AppendStringElement(dst, strconv.Itoa(i), message)
	}
	dst, _ = bsoncore.AppendArrayEnd(dst, at)
	dst = appendEmptyArray(dst, "extraIndexEntries")
	dst = appendEmptyArray(dst, "missingIndexEntries")
	return appendEmptyArray(dst, "corruptRecords")
}
