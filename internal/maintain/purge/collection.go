package purge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// defaultComment marks the commands of a purge, so that people and policies know them.
const defaultComment = "oxbow:purge"

// collection runs commands on one target.
type collection struct {
	Target
	comment string // of the commands
}

// find is what is asked of a collection; the zero value of a field leaves it out.
type find struct {
	filter, sort, projection bson.Document
	min                      bson.Document // of the hinted index: keys below it are left out
	hint                     bson.Value
	skip, limit              int
}

// body is the find command without its $db.
func (f *find) body(collection string) *bsoncore.DocumentBuilder {
	b := bsoncore.NewDocumentBuilder().AppendString("find", collection)
	appendFilter(b, "filter", f.filter)
	appendFilter(b, "sort", f.sort)
	appendFilter(b, "projection", f.projection)
	appendFilter(b, "min", f.min)
	if f.skip > 0 {
		b.AppendInt64("skip", int64(f.skip))
	}
	if f.limit > 0 {
		b.AppendInt64("limit", int64(f.limit))
	}
	appendHint(b, f.hint)
	return b
}

func appendFilter(b *bsoncore.DocumentBuilder, name string, filter bson.Document) {
	if len(filter) > emptyLength {
		b.AppendDocument(name, filter)
	}
}

func appendHint(b *bsoncore.DocumentBuilder, hint bson.Value) {
	if hint.Type != 0 {
		b.AppendValue("hint", hint)
	}
}

// run runs a command in the target's database.
func (c *collection) run(ctx context.Context, on backend.Backend, body *bsoncore.DocumentBuilder, sequences ...backend.Sequence) (bson.Document, error) {
	command := bson.Document(body.AppendString("$db", c.Namespace.Database).Build())
	reply, err := on.Run(ctx, &backend.Request{Body: command, Sequences: sequences})
	if err == nil {
		err = backend.Check(reply)
	}
	if err != nil {
		name, _, _ := bson.First(command)
		return nil, fmt.Errorf("%s on %s: %w", name, c.Namespace, err)
	}
	return reply, nil
}

// find returns documents, as many as fit into one batch: fewer than the limit does not mean that there are no more, none does.
func (c *collection) find(ctx context.Context, f find) ([]bson.Document, error) {
	body := f.body(c.Namespace.Collection).AppendBoolean("singleBatch", true).AppendString("comment", c.comment)
	if f.limit > 0 {
		body.AppendInt32("batchSize", int32(f.limit))
	}
	reply, err := c.run(ctx, c.Backend, body)
	if err != nil {
		return nil, err
	}
	cursor, err := backend.ParseCursorReply(reply)
	if err != nil {
		return nil, err
	}
	return documents(cursor.Batch), nil
}

func documents(array bson.Array) []bson.Document {
	var list []bson.Document
	for it := bson.Elements(array); it.Next(); {
		list = append(list, it.Value().Data)
	}
	return list
}

// errTooLong is a count that takes more time than it is given.
var errTooLong = errors.New("counting takes too long")

// count counts what a filter matches in the time that it is given; 0: whatever it takes.
func (c *collection) count(ctx context.Context, filter bson.Document, hint bson.Value, in time.Duration) (int64, error) {
	body := bsoncore.NewDocumentBuilder().AppendString("count", c.Namespace.Collection)
	appendFilter(body, "query", filter)
	appendHint(body, hint)
	if in > 0 {
		body.AppendInt64("maxTimeMS", in.Milliseconds())
	}
	reply, err := c.run(ctx, c.Backend, body)
	if mongoerr.Is(err, mongoerr.MaxTimeMSExpired) {
		return 0, errTooLong
	}
	if err != nil {
		return 0, err
	}
	n, _ := bson.Get(reply, "n")
	count, _ := n.AsInt64OK()
	return count, nil
}

// takesHint reports whether the servers' delete takes a hint: from MongoDB 4.4 on, which is wire version 9
// (https://www.mongodb.com/docs/manual/reference/command/delete/).
func (c *collection) takesHint() bool {
	d, ok := c.Backend.(backend.Described)
	if !ok {
		return true
	}
	wire := d.Servers().WireVersion
	return wire == 0 || wire >= 9
}

// statement is one statement of a delete: all that the filter matches.
func (c *collection) statement(filter bson.Document, hint bson.Value) bson.Document {
	b := bsoncore.NewDocumentBuilder().AppendDocument("q", filter).AppendInt32("limit", 0)
	if c.takesHint() {
		appendHint(b, hint)
	}
	return bson.Document(b.Build())
}

// delete sends statements, waits until a majority has what they did and returns how many documents went. With an error some may have gone.
func (c *collection) delete(ctx context.Context, statements ...bson.Document) (int64, error) {
	body := bsoncore.NewDocumentBuilder().AppendString("delete", c.Namespace.Collection).AppendBoolean("ordered", false)
	majority(body)
	if c.takesHint() {
		body.AppendString("comment", c.comment)
	}
	reply, err := c.run(ctx, c.Backend, body, backend.Sequence{Name: "deletes", Documents: statements})
	if err != nil {
		return 0, err
	}
	w, err := backend.ParseWriteReply(reply)
	if err == nil {
		err = w.Err()
	}
	if err != nil {
		return 0, fmt.Errorf("delete from %s: %w", c.Namespace, err)
	}
	return w.N, nil
}

// explain explains a command with a verbosity (https://www.mongodb.com/docs/manual/reference/command/explain/).
func (c *collection) explain(ctx context.Context, on backend.Backend, command *bsoncore.DocumentBuilder, verbosity string) (bson.Document, error) {
	body := bsoncore.NewDocumentBuilder().AppendDocument("explain", command.Build()).AppendString("verbosity", verbosity)
	return c.run(ctx, on, body)
}

// indexes lists the collection's indexes; none where there is no collection.
func (c *collection) indexes(ctx context.Context) ([]bson.Document, error) {
	reply, err := c.run(ctx, c.Backend, bsoncore.NewDocumentBuilder().AppendString("listIndexes", c.Namespace.Collection))
	if mongoerr.Is(err, mongoerr.NamespaceNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	cursor, err := backend.ParseCursorReply(reply)
	if err != nil {
		return nil, err
	}
	return documents(cursor.Batch), nil
}

// average is the size of a document on average, 0 where it isn't known.
func (c *collection) average(ctx context.Context) int64 {
	reply, err := c.run(ctx, c.Backend, bsoncore.NewDocumentBuilder().AppendString("collStats", c.Namespace.Collection))
	if err != nil {
		return 0
	}
	size, _ := bson.Get(reply, "avgObjSize")
	bytes, _ := size.AsFloat64OK()
	return int64(bytes)
}

// fieldsOnly is a projection of some paths alone.
func fieldsOnly(paths ...string) bson.Document {
	b := bsoncore.NewDocumentBuilder()
	id := false
	for _, p := range paths {
		b.AppendInt32(p, 1)
		id = id || p == "_id"
	}
	if !id {
		b.AppendInt32("_id", 0)
	}
	return bson.Document(b.Build())
}

// ascending is a sort by one path, and descending its reverse.
func ascending(path string) bson.Document {
	return bson.Document(bsoncore.NewDocumentBuilder().AppendInt32(path, 1).Build())
}

func descending(path string) bson.Document {
	return bson.Document(bsoncore.NewDocumentBuilder().AppendInt32(path, -1).Build())
}

// text is a string as a value.
func text(s string) bson.Value {
	return bson.Value{Type: bson.TypeString, Data: bsoncore.AppendString(nil, s)}
}
