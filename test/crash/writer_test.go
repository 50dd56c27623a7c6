package crash

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// writer writes one operation after the other into documents of its own, and knows what there must be.
type writer struct {
	name       string
	collection *mongo.Collection
	base       time.Time
	kept       bool // the collection's documents go by themselves
	retries    bool
	rng        *rand.Rand
	counters   *counters

	docs     map[string][]state // by _id: as it may be; several only after a write that failed
	prefixes [][]string         // _ids of ordered inserts that failed
	next     int
	done     atomic.Int64
	failed   atomic.Int64
}

// most is how many documents a writer has about.
const most = 60

// step does one operation.
func (w *writer) step(t *testing.T) {
	if w.counters != nil && w.rng.IntN(5) == 0 {
		w.addToCounter(t)
		return
	}
	mine := w.settled()
	if len(mine) == 0 || len(mine) < most && w.rng.IntN(2) == 0 {
		[]func(*testing.T){w.insert, w.insertMany, w.upsert, w.insert, w.bulk}[w.rng.IntN(5)](t)
		return
	}
	d := w.docs[mine[w.rng.IntN(len(mine))]][0].doc
	if len(mine) >= most {
		[]func(*testing.T, document){w.delete, w.findAndDelete, w.deleteMany}[w.rng.IntN(3)](t, d)
		return
	}
	[]func(*testing.T, document){w.update, w.replace, w.findAndUpdate, w.updateMany, w.update, w.delete}[w.rng.IntN(6)](t, d)
}

// settled returns the documents that are there and in no doubt, nor about to go.
func (w *writer) settled() (ids []string) {
	for id, states := range w.docs {
		if len(states) == 1 && states[0].there && (!w.kept || time.Since(states[0].doc.At) < time.Minute) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// fresh is a new document.
func (w *writer) fresh() document {
	w.next++
	base := w.base
	if w.kept {
		base = time.Now().UTC()
	}
	n := int32(w.rng.IntN(100))
	return document{
		ID: fmt.Sprintf("%s-%06d", w.name, w.next), W: w.name, H: w.rng.Int32N(40) - 10, N: n, M: 2 * n, Last: "insert", Tags: make([]int32, w.rng.IntN(4)),
		At: base.Add(-time.Duration(w.rng.Int64N(int64(4 * time.Minute)))).Truncate(time.Millisecond), Pad: strings.Repeat("x", w.rng.IntN(2000)),
	}
}

// filter finds a document, with the layout's fields or without.
func (w *writer) filter(d document) bson.D {
	if w.rng.IntN(2) == 0 {
		return bson.D{{Key: "_id", Value: d.ID}}
	}
	return d.place()
}

// place is the filter with the layout's fields.
func (d document) place() bson.D {
	return bson.D{{Key: "_id", Value: d.ID}, {Key: "h", Value: d.H}, {Key: "at", Value: d.At}}
}

func (w *writer) token(what string) string { return fmt.Sprintf("%s%d", what, w.rng.IntN(1000)) }

// settle notes how a write of documents ended: as they are now, or in doubt.
func (w *writer) settle(t *testing.T, what string, err error, after ...state) {
	if err == nil {
		w.done.Add(1)
	} else {
		w.failed.Add(1)
		w.mustBeCutOff(t, what, err)
	}
	for _, s := range after {
		if err == nil {
			w.docs[s.doc.ID] = []state{s}
			continue
		}
		before := w.docs[s.doc.ID]
		if len(before) == 0 {
			before = []state{{}}
		}
		w.docs[s.doc.ID] = append(before, s)
	}
}

// mustBeCutOff refuses the errors of a server that is there.
func (w *writer) mustBeCutOff(t *testing.T, what string, err error) {
	t.Helper()
	if answered(err) {
		t.Errorf("%s: %s: %v", w.name, what, err)
	}
}

// answered says whether an error came from a server, which gives each a code. (The driver has no name for the others: its error
// of a connection pool that another operation's failure emptied is not labelled as one of the network.)
func answered(err error) bool {
	return slices.ContainsFunc(mongo.ErrorCodes(err), func(code int) bool { return code != 0 })
}

// want checks a figure of an acknowledged write.
func (w *writer) want(t *testing.T, what, id string, err error, got, want int64) {
	t.Helper()
	if err == nil && got != want {
		t.Errorf("%s: %s of %s reports %d, want %d", w.name, what, id, got, want)
	}
}

func (w *writer) insert(t *testing.T) {
	d := w.fresh()
	_, err := w.collection.InsertOne(context.Background(), d)
	w.settle(t, "insertOne", err, state{true, d})
}

func (w *writer) insertMany(t *testing.T) {
	var docs []document
	var after []state
	var ids []string
	for range w.rng.IntN(20) + 2 {
		d := w.fresh()
		docs, after, ids = append(docs, d), append(after, state{true, d}), append(ids, d.ID)
	}
	ordered := w.rng.IntN(2) == 0
	_, err := w.collection.InsertMany(context.Background(), docs, options.InsertMany().SetOrdered(ordered))
	w.settle(t, "insertMany", err, after...)
	if err != nil && ordered {
		w.prefixes = append(w.prefixes, ids)
	}
}

func (w *writer) upsert(t *testing.T) {
	d := w.fresh()
	after := d.changed("upsert")
	update := append(change("upsert"), bson.E{Key: "$setOnInsert", Value: bson.D{{Key: "w", Value: d.W}, {Key: "tags", Value: d.Tags}, {Key: "pad", Value: d.Pad}}})
	after.N, after.M = 1, 2
	r, err := w.collection.UpdateOne(context.Background(), d.place(), update, options.UpdateOne().SetUpsert(true))
	if err == nil {
		w.want(t, "upsert", d.ID, err, r.UpsertedCount, 1)
	}
	w.settle(t, "upsert", err, state{true, after})
}

func (w *writer) bulk(t *testing.T) {
	if w.kept { // what it inserts could go before it is deleted
		w.insertMany(t)
		return
	}
	a, b, c := w.fresh(), w.fresh(), w.fresh()
	token := w.token("bulk")
	models := []mongo.WriteModel{
		mongo.NewInsertOneModel().SetDocument(a), mongo.NewInsertOneModel().SetDocument(b), mongo.NewInsertOneModel().SetDocument(c),
		mongo.NewUpdateOneModel().SetFilter(a.place()).SetUpdate(change(token)), mongo.NewUpdateOneModel().SetFilter(w.filter(b)).SetUpdate(change(token)),
		mongo.NewDeleteOneModel().SetFilter(w.filter(c)),
	}
	r, err := w.collection.BulkWrite(context.Background(), models)
	if err == nil {
		w.want(t, "bulk insert", a.ID, err, r.InsertedCount, 3)
		w.want(t, "bulk update", a.ID, err, r.ModifiedCount, 2)
		w.want(t, "bulk delete", c.ID, err, r.DeletedCount, 1)
	} else { // cut off before or after each command, so these are possible, too
		for _, d := range []document{a, b, c} {
			w.docs[d.ID] = []state{{}, {true, d}}
		}
		w.prefixes = append(w.prefixes, []string{a.ID, b.ID})
	}
	w.settle(t, "bulkWrite", err, state{true, a.changed(token)}, state{true, b.changed(token)}, state{false, c})
}

func (w *writer) update(t *testing.T, d document) {
	token := w.token("update")
	r, err := w.collection.UpdateOne(context.Background(), w.filter(d), change(token))
	if err == nil {
		w.want(t, "updateOne", d.ID, err, r.ModifiedCount, 1)
	}
	w.settle(t, "updateOne", err, state{true, d.changed(token)})
}

func (w *writer) replace(t *testing.T, d document) {
	after := d.changed(w.token("replace"))
	after.Pad = strings.Repeat("y", w.rng.IntN(2000))
	r, err := w.collection.ReplaceOne(context.Background(), d.place(), after)
	if err == nil {
		w.want(t, "replaceOne", d.ID, err, r.ModifiedCount, 1)
	}
	w.settle(t, "replaceOne", err, state{true, after})
}

func (w *writer) delete(t *testing.T, d document) {
	r, err := w.collection.DeleteOne(context.Background(), w.filter(d))
	if err == nil {
		w.want(t, "deleteOne", d.ID, err, r.DeletedCount, 1)
	}
	w.settle(t, "deleteOne", err, state{false, d})
}

func (w *writer) findAndUpdate(t *testing.T, d document) {
	after := state{true, d.changed(w.token("findAndUpdate"))}
	o := options.FindOneAndUpdate().SetReturnDocument(options.After)
	var found document
	err := w.collection.FindOneAndUpdate(context.Background(), w.filter(d), change(after.doc.Last), o).Decode(&found)
	w.image(t, "findOneAndUpdate", after, found, &err)
	w.settle(t, "findOneAndUpdate", err, after)
}

func (w *writer) findAndDelete(t *testing.T, d document) {
	var found document
	err := w.collection.FindOneAndDelete(context.Background(), w.filter(d)).Decode(&found)
	w.image(t, "findOneAndDelete", state{true, d}, found, &err)
	w.settle(t, "findOneAndDelete", err, state{false, d})
}

// image checks what a findAndModify returned. That it found nothing is an error of what it did, and then no reason for doubt.
func (w *writer) image(t *testing.T, what string, want state, found document, err *error) {
	t.Helper()
	none := errors.Is(*err, mongo.ErrNoDocuments)
	if none {
		*err = nil
	}
	if *err == nil && !want.is(found, !none) {
		t.Errorf("%s: %s returned %+v (none: %v), want %+v", w.name, what, found, none, want.doc)
	}
}

func (w *writer) updateMany(t *testing.T, _ document) {
	var ids []string
	var after []state
	token := w.token("updateMany")
	for _, id := range w.some() {
		ids, after = append(ids, id), append(after, state{true, w.docs[id][0].doc.changed(token)})
	}
	r, err := w.collection.UpdateMany(context.Background(), bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}}, change(token))
	if err == nil {
		w.want(t, "updateMany", fmt.Sprint(ids), err, r.ModifiedCount, int64(len(ids)))
	}
	w.settle(t, "updateMany", err, after...)
}

func (w *writer) deleteMany(t *testing.T, _ document) {
	var ids []string
	var after []state
	for _, id := range w.some() {
		ids, after = append(ids, id), append(after, state{false, w.docs[id][0].doc})
	}
	r, err := w.collection.DeleteMany(context.Background(), bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}})
	if err == nil {
		w.want(t, "deleteMany", fmt.Sprint(ids), err, r.DeletedCount, int64(len(ids)))
	}
	w.settle(t, "deleteMany", err, after...)
}

// some returns a few settled documents.
func (w *writer) some() []string {
	ids := w.settled()
	w.rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids[:min(len(ids), 8)]
}

func (w *writer) addToCounter(t *testing.T) {
	i := w.rng.IntN(counterDocs)
	filter := bson.D{{Key: "_id", Value: fmt.Sprint("counter", i)}, {Key: "h", Value: int32(i)}, {Key: "at", Value: w.base}}
	_, err := w.collection.UpdateOne(context.Background(), filter, bson.D{{Key: "$inc", Value: bson.D{{Key: "c", Value: 1}}}}, options.UpdateOne().SetUpsert(true))
	w.settle(t, "$inc", err)
	w.counters.count(i, err == nil)
}

// check compares the writer's documents with those found, which from now on are known.
func (w *writer) check(t *testing.T, where string, found map[string]document) {
	t.Helper()
	for _, ids := range w.prefixes {
		for i := 1; i < len(ids); i++ {
			_, before := found[ids[i-1]]
			if _, there := found[ids[i]]; there && !before && !w.kept {
				t.Errorf("%s: %s: of an ordered insert %s is there and %s before it is not", where, w.name, ids[i], ids[i-1])
			}
		}
	}
	w.prefixes = nil
	for _, id := range slices.Sorted(maps.Keys(w.docs)) {
		doc, there := found[id]
		states := w.docs[id]
		if !slices.ContainsFunc(states, func(s state) bool { return s.is(doc, there) }) && (there || !w.gone(states)) {
			t.Errorf("%s: %s: found (%v) %+v, want one of %+v", where, id, there, brief(doc), states)
		}
		if there {
			w.docs[id] = []state{{true, doc}}
		} else {
			delete(w.docs, id)
		}
	}
	for id := range found {
		if strings.HasPrefix(id, w.name+"-") && len(w.docs[id]) == 0 {
			t.Errorf("%s: %s is there, which was deleted", where, id)
		}
	}
}

// gone reports whether retention may have taken a document.
func (w *writer) gone(states []state) bool {
	return w.kept && slices.ContainsFunc(states, func(s state) bool {
		return s.there && time.Since(s.doc.At.Truncate(time.Minute).Add(time.Minute)) >= 2*time.Minute
	})
}

// brief is a document without its filling.
func brief(d document) document {
	d.Pad = fmt.Sprint(len(d.Pad), " bytes")
	return d
}
