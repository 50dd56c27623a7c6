package backendtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"oxbow/internal/backend"
	"oxbow/internal/bson"

	driver "go.mongodb.org/mongo-driver/v2/bson"
)

// contracts are the parts of the contract that a script cannot say.
var contracts = []struct {
	name string
	run  func(t *testing.T, b backend.Backend)
}{
	{"sequences", testSequences},
	{"request bytes stay", testRequestStays},
	{"reply is owned", testReplyOwned},
	{"batches end at 16 MiB", testLargeBatches},
	{"a cancelled context", testCancelled},
	{"a time limit", testTimeLimit},
	{"targets", testTargets},
	{"many at once", testConcurrent},
}

// encode returns a document as BSON.
func encode(t *testing.T, doc driver.D) bson.Document {
	t.Helper()
	out, err := driver.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// send runs a request whose reply must come.
func send(t *testing.T, b backend.Backend, req *backend.Request) bson.Document {
	t.Helper()
	reply, err := b.Run(context.Background(), req)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	return reply
}

// expect compares a reply with Extended JSON.
func expect(t *testing.T, reply bson.Document, want string) {
	t.Helper()
	doc, err := parseDocument(want)
	if err != nil {
		t.Fatal(err)
	}
	if err := matchReply(doc, reply, bindings{}); err != nil {
		t.Errorf("%v\nreply: %s", err, text(reply))
	}
}

// testSequences: documents in an OP_MSG's sequence are those of the body.
func testSequences(t *testing.T, b backend.Backend) {
	const db = "contract_sequences"
	dropDatabase(t, b, db)
	insert := &backend.Request{
		Body: encode(t, driver.D{{Key: "insert", Value: "c"}, {Key: "ordered", Value: false}, {Key: "$db", Value: db}}),
		Sequences: []backend.Sequence{{Name: "documents", Documents: []bson.Document{
			encode(t, driver.D{{Key: "_id", Value: 1}}), encode(t, driver.D{{Key: "_id", Value: 1}}), encode(t, driver.D{{Key: "_id", Value: 2}}),
		}}},
	}
	expect(t, send(t, b, insert), `{"n": 2, "writeErrors": [{"index": 1, "code": 11000, "...": 1}], "ok": 1.0}`)
	update := &backend.Request{
		Body: encode(t, driver.D{{Key: "update", Value: "c"}, {Key: "$db", Value: db}}),
		Sequences: []backend.Sequence{{Name: "updates", Documents: []bson.Document{
			encode(t, driver.D{{Key: "q", Value: driver.D{{Key: "_id", Value: 1}}}, {Key: "u", Value: driver.D{{Key: "a", Value: 1}}}}),
		}}},
	}
	expect(t, send(t, b, update), `{"n": 1, "nModified": 1, "ok": 1.0}`)
	remove := &backend.Request{
		Body: encode(t, driver.D{{Key: "delete", Value: "c"}, {Key: "$db", Value: db}}),
		Sequences: []backend.Sequence{{Name: "deletes", Documents: []bson.Document{
			encode(t, driver.D{{Key: "q", Value: driver.D{}}, {Key: "limit", Value: 0}}),
		}}},
	}
	expect(t, send(t, b, remove), `{"n": 2, "ok": 1.0}`)
}

// testRequestStays: a request's bytes are neither changed nor kept.
func testRequestStays(t *testing.T, b backend.Backend) {
	const db = "contract_request"
	dropDatabase(t, b, db)
	body, err := parseDocument(`{"insert": "c", "documents": [{"a": "text", "_id": 1}], "$db": "` + db + `"}`)
	if err != nil {
		t.Fatal(err)
	}
	before := bytes.Clone(body)
	send(t, b, &backend.Request{Body: body})
	if !bytes.Equal(before, body) {
		t.Error("Run changed the request")
	}
	for i := range body {
		body[i] = 0xee
	}
	expect(t, mustRun(t, b, db, `{"find": "c"}`), `{"cursor": {"firstBatch": [{"_id": 1, "a": "text"}], "id": "<ended>", "ns": "<any>"}, "ok": 1.0}`)

	find, err := parseDocument(`{"find": "c", "filter": {"a": "text"}, "projection": {"x": "$a"}, "batchSize": 0, "$db": "` + db + `"}`)
	if err != nil {
		t.Fatal(err)
	}
	c, err := backend.ParseCursorReply(send(t, b, &backend.Request{Body: find}))
	if err != nil {
		t.Fatal(err)
	}
	for i := range find {
		find[i] = 0xee
	}
	expect(t, mustRun(t, b, db, fmt.Sprintf(`{"getMore": {"$numberLong": "%d"}, "collection": "c"}`, c.ID)),
		`{"cursor": {"nextBatch": [{"_id": 1, "x": "text"}], "id": "<ended>", "ns": "<any>"}, "ok": 1.0}`)
}

// testReplyOwned: a reply is the caller's.
func testReplyOwned(t *testing.T, b backend.Backend) {
	const db = "contract_reply"
	dropDatabase(t, b, db)
	mustRun(t, b, db, `{"insert": "c", "documents": [{"_id": 1, "a": "text"}]}`)
	first := mustRun(t, b, db, `{"find": "c"}`)
	for i := range first {
		first[i] = 0xee
	}
	second := mustRun(t, b, db, `{"find": "c"}`)
	kept := bytes.Clone(second)
	mustRun(t, b, db, `{"find": "c", "filter": {"_id": 1}}`)
	if !bytes.Equal(kept, second) {
		t.Error("a later command changed an earlier reply")
	}
	expect(t, second, `{"cursor": {"firstBatch": [{"_id": 1, "a": "text"}], "id": "<ended>", "ns": "<any>"}, "ok": 1.0}`)
}

// testLargeBatches: no reply exceeds a document's size, and no document is lost between batches.
func testLargeBatches(t *testing.T, b backend.Backend) {
	const (
		db        = "contract_large"
		documents = 20
	)
	dropDatabase(t, b, db)
	filler := strings.Repeat("x", 1<<20)
	for i := range documents {
		reply := send(t, b, &backend.Request{Body: encode(t, driver.D{
			{Key: "insert", Value: "c"},
			{Key: "documents", Value: driver.A{driver.D{{Key: "_id", Value: i}, {Key: "f", Value: filler}}}},
			{Key: "$db", Value: db},
		})})
		if err := backend.Check(reply); err != nil {
			t.Fatal(err)
		}
	}
	for _, projection := range []string{`{}`, `{"f": 1}`} {
		seen := readAll(t, b, db, `{"find": "c", "sort": {"_id": 1}, "projection": `+projection+`}`)
		want := make([]int32, documents)
		for i := range want {
			want[i] = int32(i)
		}
		if !slices.Equal(seen, want) {
			t.Errorf("projection %s: _ids %v", projection, seen)
		}
	}
	dropDatabase(t, b, db)
}

// readAll reads a cursor to its end, checks the size of each reply and returns the _ids, which are ints.
func readAll(t *testing.T, b backend.Backend, db, command string) []int32 {
	t.Helper()
	var seen []int32
	reply := mustRun(t, b, db, command)
	for {
		if len(reply) > bson.MaxInternalSize {
			t.Fatalf("a reply of %d bytes", len(reply))
		}
		c, err := backend.ParseCursorReply(reply)
		if err != nil {
			t.Fatal(err)
		}
		it := bson.Elements(c.Batch)
		for it.Next() {
			id, _ := bson.Get(it.Value().Data, "_id")
			seen = append(seen, id.Int32())
		}
		if c.ID == 0 {
			return seen
		}
		reply = mustRun(t, b, db, fmt.Sprintf(`{"getMore": {"$numberLong": "%d"}, "collection": "c"}`, c.ID))
	}
}

// testCancelled: a command whose context has ended fails, and a write is not half done.
func testCancelled(t *testing.T, b backend.Backend) {
	const db = "contract_cancelled"
	dropDatabase(t, b, db)
	mustRun(t, b, db, `{"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}]}`)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, command := range []string{
		`{"find": "c", "filter": {"a": {"$gt": 0}}}`,
		`{"insert": "c", "documents": [{"_id": 3}]}`,
		`{"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 9}}, "multi": true}]}`,
	} {
		body, err := parseDocument(command)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := b.Run(ctx, &backend.Request{Body: withDatabase(body, db)})
		if err == nil && backend.Check(reply) == nil {
			t.Errorf("%s succeeded on a cancelled context: %s", command, text(reply))
		}
	}
	expect(t, mustRun(t, b, db, `{"find": "c", "sort": {"_id": 1}}`),
		`{"cursor": {"firstBatch": [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}], "id": "<ended>", "ns": "<any>"}, "ok": 1.0}`)
}

// testTimeLimit: maxTimeMS ends a command that takes longer. A cross product by $lookup takes long on any machine.
func testTimeLimit(t *testing.T, b backend.Backend) {
	const (
		db        = "contract_limit"
		documents = 3000
	)
	dropDatabase(t, b, db)
	var docs driver.A
	for i := range documents {
		docs = append(docs, driver.D{{Key: "_id", Value: i}, {Key: "k", Value: 1}})
	}
	send(t, b, &backend.Request{Body: encode(t, driver.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}, {Key: "$db", Value: db}})})
	reply := mustRun(t, b, db, `{"aggregate": "c", "pipeline": [
		{"$lookup": {"from": "c", "localField": "k", "foreignField": "k", "as": "m"}}, {"$project": {"n": {"$size": "$m"}}}, {"$sort": {"n": 1}}],
		"cursor": {}, "maxTimeMS": 1}`)
	if err := matchError("MaxTimeMSExpired", reply); err != nil {
		t.Error(err)
	}
}

// testTargets: with OneBatch an ordered write over several namespaces is one command, whose first error ends it.
func testTargets(t *testing.T, b backend.Backend) {
	if !b.Abilities().OneBatch {
		t.Skip("this backend has no writes over several namespaces")
	}
	const db, other = "contract_targets", "contract_targets_other"
	dropDatabase(t, b, db)
	dropDatabase(t, b, other)
	one, two := backend.Namespace{Database: db, Collection: "one"}, backend.Namespace{Database: other, Collection: "two"}
	insert := &backend.Request{
		Body: encode(t, driver.D{{Key: "insert", Value: "name"}, {Key: "$db", Value: db}}),
		Sequences: []backend.Sequence{{Name: "documents", Documents: []bson.Document{
			encode(t, driver.D{{Key: "_id", Value: 1}}), encode(t, driver.D{{Key: "_id", Value: 1}}),
			encode(t, driver.D{{Key: "_id", Value: 1}}), encode(t, driver.D{{Key: "_id", Value: 2}}),
		}}},
		Targets: []backend.Namespace{one, two, one, two},
	}
	expect(t, send(t, b, insert), `{"n": 2, "writeErrors": [{"index": 2, "code": 11000, "...": 1}], "ok": 1.0}`)
	update := &backend.Request{
		Body: encode(t, driver.D{{Key: "update", Value: "name"}, {Key: "$db", Value: db}, {Key: "updates", Value: driver.A{
			driver.D{{Key: "q", Value: driver.D{{Key: "_id", Value: 1}}}, {Key: "u", Value: driver.D{{Key: "a", Value: 1}}}},
			driver.D{{Key: "q", Value: driver.D{{Key: "_id", Value: 5}}}, {Key: "u", Value: driver.D{{Key: "a", Value: 2}}}, {Key: "upsert", Value: true}},
		}}}),
		Targets: []backend.Namespace{two, one},
	}
	expect(t, send(t, b, update), `{"n": 2, "nModified": 1, "upserted": [{"index": 1, "_id": 5}], "ok": 1.0}`)
	expect(t, mustRun(t, b, db, `{"find": "one", "sort": {"_id": 1}}`),
		`{"cursor": {"firstBatch": [{"_id": 1}, {"_id": 5, "a": 2}], "id": "<ended>", "ns": "<any>"}, "ok": 1.0}`)
	expect(t, mustRun(t, b, other, `{"find": "two"}`),
		`{"cursor": {"firstBatch": [{"_id": 1, "a": 1}], "id": "<ended>", "ns": "<any>"}, "ok": 1.0}`)
	remove := &backend.Request{
		Body: encode(t, driver.D{{Key: "delete", Value: "name"}, {Key: "$db", Value: db}, {Key: "deletes", Value: driver.A{
			driver.D{{Key: "q", Value: driver.D{}}, {Key: "limit", Value: 0}}, driver.D{{Key: "q", Value: driver.D{}}, {Key: "limit", Value: 0}},
		}}}),
		Targets: []backend.Namespace{one, two},
	}
	expect(t, send(t, b, remove), `{"n": 3, "ok": 1.0}`)
	remove.Targets = remove.Targets[:1]
	if backend.Check(send(t, b, remove)) == nil {
		t.Error("fewer targets than statements were taken")
	}
}

// testConcurrent: commands of many callers don't disturb one another.
func testConcurrent(t *testing.T, b backend.Backend) {
	const (
		db      = "contract_many"
		callers = 8
		rounds  = 30
	)
	dropDatabase(t, b, db)
	var group sync.WaitGroup
	failures := make(chan error, callers)
	for caller := range callers {
		group.Go(func() {
			for round := range rounds {
				if err := writeAndRead(b, db, caller*rounds+round); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
	expect(t, mustRun(t, b, db, `{"count": "c"}`), fmt.Sprintf(`{"n": %d, "ok": 1.0}`, callers*rounds))
	expect(t, mustRun(t, b, db, `{"find": "sum", "projection": {"_id": 0}}`),
		fmt.Sprintf(`{"cursor": {"firstBatch": [{"n": %d}], "id": "<ended>", "ns": "<any>"}, "ok": 1.0}`, callers*rounds))
}

// writeAndRead inserts a document, finds it, counts it in a shared one, and opens a cursor only to kill it.
func writeAndRead(b backend.Backend, db string, id int) error {
	for _, command := range []string{
		fmt.Sprintf(`{"insert": "c", "documents": [{"_id": %d}]}`, id),
		`{"update": "sum", "updates": [{"q": {"_id": 0}, "u": {"$inc": {"n": 1}}, "upsert": true}]}`,
		fmt.Sprintf(`{"find": "c", "filter": {"_id": %d}}`, id),
		`{"find": "c", "batchSize": 0}`,
	} {
		body, err := parseDocument(command)
		if err != nil {
			return err
		}
		reply, err := b.Run(context.Background(), &backend.Request{Body: withDatabase(body, db)})
		if err == nil {
			err = backend.Check(reply)
		}
		if _, failed := bson.Get(reply, "writeErrors"); failed && err == nil {
			err = errors.New(text(reply))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
		if c, err := backend.ParseCursorReply(reply); err == nil && c.ID != 0 {
			if err := kill(b, db, c.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

func kill(b backend.Backend, db string, id int64) error {
	body, err := parseDocument(fmt.Sprintf(`{"killCursors": "c", "cursors": [{"$numberLong": "%d"}]}`, id))
	if err != nil {
		return err
	}
	reply, err := b.Run(context.Background(), &backend.Request{Body: withDatabase(body, db)})
	if err != nil {
		return err
	}
	return backend.Check(reply)
}

// testClosed: a closed backend runs nothing and says so; closing again is harmless.
func testClosed(t *testing.T, b backend.Backend) {
	if err := backend.Check(mustRun(t, b, "contract_closed", `{"ping": 1}`)); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	body, err := parseDocument(`{"insert": "c", "documents": [{"_id": 1}], "$db": "contract_closed"}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Run(context.Background(), &backend.Request{Body: body}); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("a closed backend's error is %v", err)
	}
	if err := b.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
}
