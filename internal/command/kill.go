package command

import (
	"context"
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/auth"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// killOp interrupts a running command. As in MongoDB it succeeds when there is none of that id.
func (t *Table) killOp(_ context.Context, req *Request, reply *Reply) error {
	v, ok := bson.Get(req.Body, "op")
	if !ok {
		return mongoerr.New(mongoerr.NoSuchKey, `Missing expected field "op"`)
	}
	if !bson.IsNumber(v.Type) {
		return mongoerr.New(mongoerr.TypeMismatch, `Expected field "op" to have numeric type, but found %s`, bson.TypeName(v.Type))
	}
	id, ok := wholeNumber(v)
	if !ok {
		return mongoerr.New(mongoerr.BadValue, `Expected field "op" to have a value exactly representable as a 64-bit integer, but found %s`, v)
	}
	if id < math.MinInt32 || id > math.MaxInt32 {
		return mongoerr.New(26823, "invalid op : %d. Op ID cannot be represented with 32 bits", id)
	}
	may := func(c *Conn) bool { return sameUser(c, req.Conn) }
	if t.may(req.Conn, "", auth.KillOperation) {
		may = func(*Conn) bool { return true }
	}
	if !t.operations.Kill(int32(id), may) && t.operations.Runs(int32(id)) {
		return mongoerr.New(mongoerr.Unauthorized, "not authorized on %s to execute command %s", req.Database, req.Name)
	}
	reply.Elements = bsoncore.AppendStringElement(reply.Elements, "info", "attempting to kill op")
	return nil
}
