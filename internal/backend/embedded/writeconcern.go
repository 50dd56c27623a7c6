package embedded

import (
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// checkWriteConcern refuses what no server takes, with MongoDB's errors, and returns the writeConcernError of what a server of one
// member cannot fulfil: the write is done all the same (https://www.mongodb.com/docs/manual/reference/write-concern/).
func checkWriteConcern(concern bson.Document) (unfulfilled bson.Document, err error) {
	if len(concern) == 0 {
		return nil, nil
	}
	var j, fsync bool
	it := bson.Elements(concern)
	for it.Next() && err == nil {
		v := it.Value()
		switch string(it.Key()) {
		case "w":
			unfulfilled, err = checkW(v)
		case "j":
			j, err = concernFlag("j", v)
		case "fsync":
			fsync, err = concernFlag("fsync", v)
		case "wtimeout", "wtimeoutMS":
			if !bson.IsNumber(v.Type) {
				err = concernType("wtimeout", v, "[long, int, decimal, double]")
			}
		case "provenance", "getLastError":
		default:
			err = mongoerr.New(mongoerr.IDLUnknownField, "BSON field 'writeConcern.%s' is an unknown field.", it.Key())
		}
	}
	if err == nil && j && fsync {
		err = mongoerr.New(mongoerr.FailedToParse, "fsync and j options cannot be used together")
	}
	return unfulfilled, err
}

// maxMembers is the largest number of members in a replica set, and so the largest w.
const maxMembers = 50

func checkW(v bson.Value) (bson.Document, error) {
	if name, ok := v.StringValueOK(); ok {
		if name == "majority" {
			return nil, nil
		}
		return concernError(mongoerr.UnknownReplWriteConcern,
			"No write concern mode named '"+name+"' found in replica set configuration"), nil
	}
	n, ok := v.AsInt64OK()
	switch {
	case !ok || !bson.IsNumber(v.Type):
		return nil, mongoerr.New(mongoerr.FailedToParse, "w has to be a number, string, or object; found: %s", bson.TypeName(v.Type))
	case n < 0 || n > maxMembers:
		return nil, mongoerr.New(mongoerr.FailedToParse, "w has to be a non-negative number and not greater than %d; found: %d", maxMembers, n)
	case n > 1:
		return concernError(mongoerr.UnsatisfiableWriteConcern, "Not enough data-bearing nodes"), nil
	}
	return nil, nil
}

func concernFlag(name string, v bson.Value) (bool, error) {
	if b, ok := v.BooleanOK(); ok {
		return b, nil
	}
	if f, ok := v.AsFloat64OK(); ok {
		return f != 0, nil
	}
	if v.Type == bson.TypeNull {
		return false, nil
	}
	return false, concernType(name, v, "[bool, long, int, decimal, double]")
}

func concernType(name string, v bson.Value, expected string) error {
	return mongoerr.New(mongoerr.TypeMismatch, "BSON field 'writeConcern.%s' is the wrong type '%s', expected types '%s'",
		name, bson.TypeName(v.Type), expected)
}

func concernError(code mongoerr.Code, message string) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendInt32Element(dst, "code", int32(code))
	dst = bsoncore.AppendStringElement(dst, "codeName", code.String())
	dst = bsoncore.AppendStringElement(dst, "errmsg", message)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
