package remote

import (
	"context"
	"errors"
	"fmt"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Run sends one command and returns the server's reply. Where that is safe and the failure is one that another server, or the same a moment later, may not
// have, it sends it once more: as soon as there is a server for it, within the time of server selection. (docs/decisions, "Failures of backends".)
func (b *Backend) Run(ctx context.Context, req *backend.Request) (bson.Document, error) {
	name, _, _ := bson.First(req.Body)
	if body := b.withConcern(name, req.Body); len(body) != len(req.Body) {
		with := *req
		with.Body = body
		req = &with
	}
	reply, err := b.once(ctx, req)
	if ctx.Err() != nil || !isPassing(reply, err) || !isRepeatable(req.Body, err) {
		return reply, err
	}
	second, secondErr := b.once(ctx, req)
	switch {
	case secondErr == nil:
		return second, nil
	case reply != nil: // which tells more than a failure to get another
		return reply, nil
	case errors.Is(err, backend.ErrUnavailable):
		return nil, secondErr
	}
	// The first may have been run, whatever became of the second.
	return nil, fmt.Errorf("%w; once more: %v", err, secondErr)
}

// isPassing reports whether a failure, or a reply that tells one, may pass by itself.
func isPassing(reply bson.Document, err error) bool {
	if err != nil {
		if _, refused := refusedLogin(err); refused {
			return false
		}
		return errors.Is(err, errNoConnection) || !errors.Is(err, backend.ErrUnavailable) && !errors.Is(err, errMalformed)
	}
	it := bson.Elements(reply)
	for it.Next() {
		v := it.Value()
		switch string(it.Key()) {
		case "code":
			if isPassingCode(v) {
				return true
			}
		case "writeConcernError":
			if code, ok := bson.Get(v.Data, "code"); ok && isPassingCode(code) {
				return true
			}
		case "writeErrors":
			if _, first, ok := bson.First(v.Data); ok {
				if code, ok := bson.Get(first.Data, "code"); ok && isPassingCode(code) {
					return true
				}
			}
		}
	}
	return false
}

func isPassingCode(v bson.Value) bool {
	n, _ := v.AsInt64OK()
	return mongoerr.Code(n).Retryable()
}

// isRepeatable reports whether a command may be sent again after a failure: any that was certainly not sent; a read that leaves nothing behind; a write
// that the server knows again by its session and number. In a transaction the application begins again.
func isRepeatable(body bson.Document, err error) bool {
	if err != nil && errors.Is(err, errNoConnection) {
		return true
	}
	name, _, _ := bson.First(body)
	kind := repeats[name]
	hasNumber, inTransaction := false, false
	it := bson.Elements(body)
	for it.Next() {
		switch string(it.Key()) {
		case "txnNumber":
			hasNumber = true
		case "autocommit":
			inTransaction = true
		case "pipeline":
			if kind == read && writesInto(it.Value()) {
				return false
			}
		}
	}
	return !inTransaction && (kind == read || kind == write && hasNumber)
}

// repeatable says how a command can be one that is safe to send again.
type repeatable int

const (
	unsafe repeatable = iota
	read
	write
)

var repeats = map[string]repeatable{
	"find": read, "aggregate": read, "count": read, "distinct": read, "listCollections": read, "listIndexes": read, "listDatabases": read,
	"collStats": read, "dbStats": read, "explain": read, "ping": read,
	"insert": write, "update": write, "delete": write, "findAndModify": write, "findandmodify": write,
}

// writesInto reports whether a pipeline ends in a stage that writes.
func writesInto(pipeline bson.Value) bool {
	stages, ok := pipeline.ArrayOK()
	if !ok {
		return false
	}
	var last bsoncore.Value
	it := bson.Elements(stages)
	for it.Next() {
		last = it.Value()
	}
	name, _, _ := bson.First(last.Data)
	return name == "$out" || name == "$merge"
}
