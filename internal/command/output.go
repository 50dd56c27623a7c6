package command

import (
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// checkOutput refuses a pipeline that a backend runs whole and that writes ($out, $merge) where only the gateway may: into a partition, a collection
// with a layout, the catalog, or a database that lies on another backend.
func (d *Data) checkOutput(req *Request, on string) error {
	pipeline, _ := bson.Get(req.Body, "pipeline")
	if pipeline.Type != bson.TypeArray {
		return nil
	}
	it := bson.Elements(pipeline.Data)
	for it.Next() {
		if it.Value().Type != bson.TypeDocument {
			continue // the backend's error
		}
		name, argument, _ := bson.First(it.Value().Data)
		if name != "$out" && name != "$merge" {
			continue
		}
		database, collection := outputOf(argument, req.Database)
		into, err := d.named(database, collection)
		if err != nil {
			return err
		}
		if into.source.Collection != nil {
			return mongoerr.New(mongoerr.CommandNotSupported, "%s into %s is not supported: it has a layout", name, into.source.Namespace())
		}
		if into.source.Backend != on {
			return mongoerr.New(mongoerr.CommandNotSupported, "%s into %s is not supported: it lies on another backend", name, into.source.Namespace())
		}
		if err := into.writable(); err != nil {
			return err
		}
	}
	return nil
}

// hasOutput reports whether a pipeline writes.
func hasOutput(req *Request) bool {
	pipeline, _ := bson.Get(req.Body, "pipeline")
	it := bson.Elements(pipeline.Data)
	for pipeline.Type == bson.TypeArray && it.Next() {
		if it.Value().Type != bson.TypeDocument {
			continue
		}
		if name, _, _ := bson.First(it.Value().Data); name == "$out" || name == "$merge" {
			return true
		}
	}
	return false
}

// outputOf reads where $out or $merge writes to: "coll", {db, coll}, {into: "coll"} or {into: {db, coll}}.
func outputOf(v bson.Value, database string) (db, collection string) {
	if into, ok := bson.Get(v.Data, "into"); ok && v.Type == bson.TypeDocument {
		v = into
	}
	if name, ok := v.StringValueOK(); ok {
		return database, name
	}
	if v.Type != bson.TypeDocument {
		return database, ""
	}
	if other, ok := bson.Get(v.Data, "db"); ok {
		database, _ = other.StringValueOK()
	}
	name, _ := bson.Get(v.Data, "coll")
	collection, _ = name.StringValueOK()
	return database, collection
}
