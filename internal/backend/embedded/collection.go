package embedded

import (
	"strings"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/engine"
	"oxbow/internal/mongoerr"
	"oxbow/internal/statement"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

func (b *Backend) create(_ operation, req *backend.Request) (bson.Document, error) {
	c, err := statement.ParseCreate(req.Body)
	if err != nil {
		return nil, err
	}
	concern, err := checkWriteConcern(c.WriteConcern)
	if err != nil {
		return nil, err
	}
	if err := statement.CheckDatabase(c.Database); err != nil {
		return nil, err
	}
	if _, err := b.db.CreateTable(engine.Name{Database: c.Database, Collection: c.Collection}, c.Options); err != nil {
		return nil, err
	}
	return newReply(withConcern(concern)), nil
}

// withConcern appends writeConcernError where there is one.
func withConcern(concern bson.Document) func([]byte) []byte {
	return func(dst []byte) []byte {
		if concern == nil {
			return dst
		}
		return bsoncore.AppendDocumentElement(dst, "writeConcernError", concern)
	}
}

// drop answers ok for a collection that isn't there, as MongoDB 7.0 does.
func (b *Backend) drop(_ operation, req *backend.Request) (bson.Document, error) {
	d, err := statement.ParseDrop(req.Body)
	if err != nil {
		return nil, err
	}
	concern, err := checkWriteConcern(d.WriteConcern)
	if err != nil {
		return nil, err
	}
	name := engine.Name{Database: d.Database, Collection: d.Collection}
	table, exists := b.db.Table(name)
	if !exists {
		return newReply(withConcern(concern)), nil
	}
	indexes := len(table.Indexes())
	switch err := b.db.DropTable(name); {
	case mongoerr.Is(err, mongoerr.NamespaceNotFound):
		return newReply(withConcern(concern)), nil
	case err != nil:
		return nil, err
	}
	b.usage.forget(name)
	return newReply(func(dst []byte) []byte {
		dst = bsoncore.AppendInt32Element(dst, "nIndexesWas", int32(indexes))
		dst = bsoncore.AppendStringElement(dst, "ns", namespace(name))
		return withConcern(concern)(dst)
	}), nil
}

func (b *Backend) dropDatabase(_ operation, req *backend.Request) (bson.Document, error) {
	d, err := statement.ParseDropDatabase(req.Body)
	if err != nil {
		return nil, err
	}
	concern, err := checkWriteConcern(d.WriteConcern)
	if err != nil {
		return nil, err
	}
	dropped := false
	for _, table := range b.db.Tables(d.Database) {
		err := b.db.DropTable(table.Name())
		if err != nil && !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
			return nil, err
		}
		b.usage.forget(table.Name())
		dropped = true
	}
	return newReply(func(dst []byte) []byte {
		if dropped {
			dst = bsoncore.AppendStringElement(dst, "dropped", d.Database)
		}
		return withConcern(concern)(dst)
	}), nil
}

func (b *Backend) renameCollection(_ operation, req *backend.Request) (bson.Document, error) {
	r, err := statement.ParseRenameCollection(req.Body)
	if err != nil {
		return nil, err
	}
	concern, err := checkWriteConcern(r.WriteConcern)
	if err != nil {
		return nil, err
	}
	from, err := parseNamespace(r.From)
	if err != nil {
		return nil, err
	}
	to, err := parseNamespace(r.To)
	if err != nil {
		return nil, err
	}
	if from == to {
		return nil, mongoerr.New(mongoerr.IllegalOperation, "Can't rename a collection to itself")
	}
	if _, exists := b.db.Table(from); !exists {
		return nil, mongoerr.New(mongoerr.NamespaceNotFound, "Source collection %s does not exist", r.From)
	}
	if err := b.db.RenameTable(from, to, r.DropTarget); err != nil {
		return nil, err
	}
	b.usage.forget(from)
	return newReply(withConcern(concern)), nil
}

// parseNamespace splits "database.collection" and checks both.
func parseNamespace(text string) (engine.Name, error) {
	database, collection, _ := strings.Cut(text, ".")
	if err := statement.CheckDatabase(database); err != nil {
		return engine.Name{}, err
	}
	if err := statement.CheckCollection(database, collection); err != nil {
		return engine.Name{}, err
	}
	return engine.Name{Database: database, Collection: collection}, nil
}
