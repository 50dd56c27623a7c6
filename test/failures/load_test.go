package failures

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// history is what clients did and were told. Safe for concurrent use.
type history struct {
	mu           sync.Mutex
	began        time.Time
	ops          []porcupine.Operation
	acknowledged int // statements of writes
	unknown      int // statements of writes of which nobody knows whether they were done
	errs         map[string]int
}

func newHistory() *history { return &history{began: time.Now(), errs: map[string]int{}} }

func (h *history) now() int64 { return time.Since(h.began).Nanoseconds() }

// note adds an operation on one document. lost: nobody knows whether it was done.
func (h *history) note(client int, call int64, in input, out output, lost bool) {
	end := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if lost {
		end = never
		h.unknown++
	} else if in.kind != opRead {
		h.acknowledged++
	}
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: end})
}

func (h *history) failed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errs[kindOf(err)]++
}

// kindOf sorts errors for the report.
func kindOf(err error) string {
	var server mongo.ServerError
	switch {
	case errors.As(err, &server):
		return fmt.Sprint("code ", server.ErrorCodes())
	case mongo.IsNetworkError(err):
		return "network"
	case mongo.IsTimeout(err):
		return "timeout"
	}
	text, _, _ := strings.Cut(err.Error(), ":")
	return text
}

// worker is one client of the load.
type worker struct {
	id      int
	client  *mongo.Client
	history *history
	rng     *rand.Rand
	base    int64 // the first second of the documents' times
	serial  int   // of its inserts' values
}

// documents a collection. They lie in all partitions.
const documents = 4

var collections = []string{"plain", "time", "hash", "both"}

// document is the fields that decide where a document lies.
func (w *worker) document(id int) bson.D {
	return bson.D{{Key: "_id", Value: id}, {Key: "k", Value: id}, {Key: "t", Value: w.base + int64(id%3)*3600}}
}

// filter finds a document: by all that decides about its place, or by _id alone.
func (w *worker) filter(id int) bson.D {
	if w.rng.IntN(3) > 0 {
		return w.document(id)
	}
	return bson.D{{Key: "_id", Value: id}}
}

// opTime is the longest that an operation is waited for.
const opTime = 10 * time.Second

// step does one random operation and notes what came of it.
func (w *worker) step(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	name := collections[w.rng.IntN(len(collections))]
	c := w.client.Database(database).Collection(name)
	k := key{name, w.rng.IntN(documents)}
	call := w.history.now()
	switch w.rng.IntN(12) {
	case 0, 1:
		w.insertOne(ctx, c, k, call)
	case 2:
		w.insertMany(ctx, c, k, call)
	case 3, 4:
		w.updateOne(ctx, c, k, call)
	case 5:
		w.updateMany(ctx, c, k, call)
	case 6:
		w.upsert(ctx, c, k, call)
	case 7:
		w.findAndModify(ctx, c, k, call)
	case 8:
		w.bulk(ctx, c, k, call)
	case 9:
		w.delete(ctx, c, k, call)
	default:
		w.read(ctx, c, k, call)
	}
}

var addOne = bson.D{{Key: "$inc", Value: bson.D{{Key: "v", Value: 1}}}}

// value is one that no other insert has, with room for what is added to it.
func (w *worker) value() int {
	w.serial++
	return (w.id*1000 + w.serial) * 1000
}

func (w *worker) insertOne(ctx context.Context, c *mongo.Collection, k key, call int64) {
	in := input{k, opInsert, w.value()}
	_, err := c.InsertOne(ctx, append(w.document(k.id), bson.E{Key: "v", Value: in.value}))
	if mongo.IsDuplicateKeyError(err) && !hasConcernError(err) {
		w.history.note(w.id, call, in, output{told: true, done: false}, false)
		return
	}
	w.noteWrite(call, in, err, output{told: true, done: true})
}

// noteWrite notes a write of one statement.
func (w *worker) noteWrite(call int64, in input, err error, out output) {
	if err != nil {
		w.history.failed(err)
		w.history.note(w.id, call, in, output{}, true)
		return
	}
	w.history.note(w.id, call, in, out, false)
}

func hasConcernError(err error) bool {
	var one mongo.WriteException
	var many mongo.BulkWriteException
	return errors.As(err, &one) && one.WriteConcernError != nil || errors.As(err, &many) && many.WriteConcernError != nil
}

// insertMany inserts documents that are mostly there already, in order or not.
func (w *worker) insertMany(ctx context.Context, c *mongo.Collection, k key, call int64) {
	ordered := w.rng.IntN(2) == 0
	var docs []any
	var ins []input
	for i := range documents {
		in := input{key{k.collection, (k.id + i) % documents}, opInsert, w.value()}
		ins = append(ins, in)
		docs = append(docs, append(w.document(in.key.id), bson.E{Key: "v", Value: in.value}))
	}
	_, err := c.InsertMany(ctx, docs, options.InsertMany().SetOrdered(ordered))
	w.noteMany(call, ins, err, ordered, output{told: true, done: true})
}

// bulk adds to several documents in one command.
func (w *worker) bulk(ctx context.Context, c *mongo.Collection, k key, call int64) {
	ordered := w.rng.IntN(2) == 0
	var models []mongo.WriteModel
	var ins []input
	for i := range documents {
		in := input{key: key{k.collection, (k.id + i) % documents}, kind: opAdd}
		ins = append(ins, in)
		models = append(models, mongo.NewUpdateOneModel().SetFilter(w.filter(in.key.id)).SetUpdate(addOne))
	}
	result, err := c.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(ordered))
	out := output{}
	if err == nil && result.MatchedCount == documents {
		out = output{told: true, done: true}
	}
	if err == nil && result.MatchedCount == 0 {
		out = output{told: true, done: false}
	}
	w.noteMany(call, ins, err, ordered, out)
}

// noteMany notes the statements of a write: those with an error of their own were not done, in an ordered one neither those behind it, and the
// others were unless the command as a whole failed.
func (w *worker) noteMany(call int64, ins []input, err error, ordered bool, out output) {
	var bulk mongo.BulkWriteException
	if err != nil && (!errors.As(err, &bulk) || len(bulk.WriteErrors) == 0 || bulk.WriteConcernError != nil || !allDuplicates(bulk)) {
		w.history.failed(err)
		for _, in := range ins {
			w.history.note(w.id, call, in, output{}, true)
		}
		return
	}
	wrong := map[int]bool{}
	for _, e := range bulk.WriteErrors {
		wrong[e.Index] = true
	}
	for i, in := range ins {
		if wrong[i] {
			w.history.note(w.id, call, in, output{told: true, done: false}, false)
			if ordered {
				return
			}
			continue
		}
		w.history.note(w.id, call, in, out, false)
	}
}

func allDuplicates(e mongo.BulkWriteException) bool {
	const duplicateKey = 11000
	for _, one := range e.WriteErrors {
		if one.Code != duplicateKey {
			return false
		}
	}
	return true
}

func (w *worker) updateOne(ctx context.Context, c *mongo.Collection, k key, call int64) {
	result, err := c.UpdateOne(ctx, w.filter(k.id), addOne)
	out := output{told: true}
	if err == nil {
		out.done = result.MatchedCount == 1
	}
	w.noteWrite(call, input{key: k, kind: opAdd}, err, out)
}

// updateMany adds to all documents of the collection. No driver sends it again.
func (w *worker) updateMany(ctx context.Context, c *mongo.Collection, k key, call int64) {
	result, err := c.UpdateMany(ctx, bson.D{{Key: "v", Value: bson.D{{Key: "$gte", Value: 0}}}}, addOne)
	out := output{}
	if err == nil && result.MatchedCount == documents {
		out = output{told: true, done: true}
	}
	if err == nil && result.MatchedCount == 0 {
		out = output{told: true, done: false}
	}
	for id := range documents {
		w.noteWrite(call, input{key: key{k.collection, id}, kind: opAdd}, err, out)
	}
}

func (w *worker) upsert(ctx context.Context, c *mongo.Collection, k key, call int64) {
	filter, update := w.document(k.id), addOne
	if w.rng.IntN(2) == 0 {
		filter, update = filter[:1], append(bson.D{{Key: "$setOnInsert", Value: filter[1:]}}, addOne...)
	}
	_, err := c.UpdateOne(ctx, filter, update, options.UpdateOne().SetUpsert(true))
	w.noteWrite(call, input{key: k, kind: opUpsert}, err, output{told: true, done: true})
}

// counter is the field that is counted.
type counter struct {
	V int `bson:"v"`
}

func (w *worker) findAndModify(ctx context.Context, c *mongo.Collection, k key, call int64) {
	var doc counter
	err := c.FindOneAndUpdate(ctx, w.filter(k.id), addOne, options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&doc)
	out := output{told: true, value: doc.V}
	if errors.Is(err, mongo.ErrNoDocuments) {
		out.value, err = absent, nil
	}
	w.noteWrite(call, input{key: k, kind: opAddReturn}, err, out)
}

func (w *worker) delete(ctx context.Context, c *mongo.Collection, k key, call int64) {
	result, err := c.DeleteOne(ctx, w.filter(k.id))
	out := output{told: true}
	if err == nil {
		out.done = result.DeletedCount == 1
	}
	w.noteWrite(call, input{key: k, kind: opDelete}, err, out)
}

// read reads one document; a read that failed tells nothing.
func (w *worker) read(ctx context.Context, c *mongo.Collection, k key, call int64) bool {
	var doc counter
	err := c.FindOne(ctx, w.filter(k.id)).Decode(&doc)
	out := output{told: true, value: doc.V}
	if errors.Is(err, mongo.ErrNoDocuments) {
		out.value, err = absent, nil
	}
	if err != nil {
		w.history.failed(err)
		return false
	}
	w.history.note(w.id, call, input{key: k, kind: opRead}, out, false)
	return true
}
