package command

import (
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// parseReadConcern checks the field readConcern, with MongoDB's errors.
func parseReadConcern(v bson.Value) (bson.Document, error) {
	doc, ok := v.DocumentOK()
	if !ok {
		return nil, wrongType("readConcern", v.Type, "object")
	}
	it := bson.Elements(doc)
	for it.Next() {
		v := it.Value()
		switch key := string(it.Key()); key {
		case "level":
			level, ok := v.StringValueOK()
			if !ok {
				return nil, wrongType("readConcern.level", v.Type, "string")
			}
			switch level {
			case "local", "available", "majority", "linearizable", "snapshot":
			default:
				return nil, mongoerr.New(mongoerr.BadValue,
					"Enumeration value '%s' for field 'readConcern.level' is not a valid value.", level)
			}
		case "afterClusterTime", "atClusterTime", "afterOpTime", "provenance", "allowTransactionTableSnapshot", "$waitLastStableRecoveryTimestamp":
		default:
			return nil, mongoerr.New(mongoerr.IDLUnknownField, "BSON field 'readConcern.%s' is an unknown field.", key)
		}
	}
	return doc, nil
}

// levelOf is a read concern's level, "" where it names none.
func levelOf(concern bson.Document) string {
	v, _ := bson.Get(concern, "level")
	level, _ := v.StringValueOK()
	return level
}

// checkNoReadConcern refuses levels above local on commands that do not read for their client, as MongoDB does
// (https://www.mongodb.com/docs/manual/reference/read-concern/#read-concern-support).
func checkNoReadConcern(req *Request) error {
	switch level := levelOf(req.ReadConcern); level {
	case "", "local", "available":
		return nil
	default:
		return mongoerr.New(mongoerr.InvalidOptions,
			"Command %s does not support { readConcern: { level: \"%s\", provenance: \"clientSupplied\" } } :: caused by :: read concern not supported",
			req.Name, level)
	}
}

// refuseSnapshot refuses reads of one point in time where the gateway would read partition after partition. In a transaction the deployment sees to it.
func refuseSnapshot(req *Request) error {
	concern := req.ReadConcern
	if req.InTransaction {
		return nil
	}
	if levelOf(concern) == "snapshot" {
		return mongoerr.New(mongoerr.CommandNotSupported, "read concern level 'snapshot' is not supported yet")
	}
	if _, ok := bson.Get(concern, "atClusterTime"); ok {
		return mongoerr.New(mongoerr.CommandNotSupported, "'readConcern.atClusterTime' is not supported yet")
	}
	return nil
}
