package purge

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/maintain"
	"oxbow/internal/mongoerr"
)

// exporting is the strategy IDs. It holds the _ids that it has exported in memory: where they are lost, they are exported again.
type exporting struct {
	options Options
	targets []Target
	at      string // name of the target that removal and cursor are of
	removal removal
	size    *sizing

	cursor int64           // of the export, 0: not open
	ids    []bson.Document // exported and not yet sent, each {_id: …}
	read   int64           // exported since the export began
	gone   int64           // of those
}

// idsState is a checkpoint of IDs.
type idsState struct {
	Now   int64    `bson:"now"`
	Index string   `bson:"index"`
	Begun string   `bson:"begun"` // name of the target that Index is of
	Done  []string `bson:"done"`  // names of targets
	Total int64    `bson:"total"` // documents that were to go, -1: not known
	Tally tally    `bson:"tally"`
}

func milliTime(ms int64) time.Time { return time.UnixMilli(ms) }

// Step implements maintain.Job: it exports _ids where there are none, else sends a delete of some.
func (x *exporting) Step(ctx context.Context, checkpoint bson.Document, pace maintain.Pace) (maintain.Outcome, error) {
	s := idsState{Now: x.options.Clock().UnixMilli()}
	if checkpoint != nil {
		if err := driver.Unmarshal(checkpoint, &s); err != nil {
			return maintain.Outcome{}, fmt.Errorf("read the checkpoint: %w", err)
		}
	}
	if x.targets == nil {
		var err error
		if x.targets, err = x.options.Targets(ctx); err != nil {
			return maintain.Outcome{}, fmt.Errorf("list what documents go from: %w", err)
		}
		x.size = newSizing(x.options.Batch)
	}
	if err := pace.Wait(ctx, 0, 0); err != nil {
		return maintain.Outcome{}, err
	}
	left := pending(x.targets, s.Done)
	if len(left) == 0 {
		return maintain.Outcome{Done: true}, nil
	}
	did, err := x.step(ctx, &s, left[0], pace)
	if hintGone(err) {
		x.at = "" // begins again with the next try
	}
	if err != nil {
		return maintain.Outcome{}, err
	}
	s.Tally.add(did)
	out := did.outcome()
	out.Done = len(s.Done) == len(x.targets)
	out.Remaining = remaining(out.Done, s.Total, s.Tally.Gone, len(x.targets))
	out.Checkpoint, err = driver.Marshal(&s)
	return out, err
}

func (x *exporting) step(ctx context.Context, s *idsState, t Target, pace maintain.Pace) (tally, error) {
	what := x.options.Predicate.at(milliTime(s.Now))
	if s.Begun != t.name() || x.at != t.name() {
		if err := x.begin(ctx, s, t, what); err != nil {
			return tally{}, err
		}
	}
	if len(x.ids) == 0 {
		return tally{}, x.export(ctx, s, what)
	}
	return x.remove(ctx, pace)
}

// begin looks for an index, and makes sure that it leads to what goes and to little else.
func (x *exporting) begin(ctx context.Context, s *idsState, t Target, what cut) error {
	c := x.options.on(t)
	a, err := c.reached(ctx, what)
	if err != nil {
		return err
	}
	if err := x.try(ctx, c, find{filter: what.filter, hint: a.hint(), limit: defaultBatch}); err != nil {
		return err
	}
	if s.Begun != t.name() {
		s.Total = x.options.total(ctx, c, what, a)
	}
	s.Begun, s.Index = t.name(), a.index
	x.at, x.removal = t.name(), x.options.removal(ctx, c, what.filter)
	x.cursor, x.ids, x.read, x.gone = 0, nil, 0, 0
	return nil
}

// total is how many documents of a collection go, -1 where counting takes too long.
func (o *Options) total(ctx context.Context, c *collection, what cut, a access) int64 {
	n, err := c.count(ctx, what.filter, a.hint(), totalTime)
	if err != nil {
		return -1
	}
	return n
}

// remaining is what is left of a total where there is one target; of several only the one at hand was counted.
func remaining(done bool, total, gone int64, targets int) int64 {
	switch {
	case done:
		return 0
	case total < 0 || targets > 1:
		return -1
	}
	return max(0, total-gone)
}

// try runs the first part of an export for its figures.
func (x *exporting) try(ctx context.Context, c *collection, f find) error {
	plan, err := c.measure(ctx, f)
	if err != nil {
		return err
	}
	if plan.examined >= defaultBatch && float64(plan.examined) > x.options.MaxRatio*float64(max(plan.returned, 1)) {
		return &Refusal{Reason: fmt.Sprintf("%d documents are examined for %d that go, more than the %g for one that are allowed",
			plan.examined, plan.returned, x.options.MaxRatio)}
	}
	return nil
}

// export reads _ids until there are as many as memory may hold. At the end of an export that found none, the target is done.
func (x *exporting) export(ctx context.Context, s *idsState, what cut) error {
	c := x.removal.collection
	on := c.Backend
	if c.Reader != nil {
		on = c.Reader
	}
	for len(x.ids) < x.options.Export {
		batch, err := x.nextIDs(ctx, c, on, s, what)
		if err != nil {
			return err
		}
		for _, d := range batch {
			x.ids = append(x.ids, append(bson.Document(nil), d...))
		}
		x.read += int64(len(batch))
		if x.cursor == 0 {
			break
		}
	}
	if len(x.ids) > 0 {
		return nil
	}
	// What was read on a member that lags behind may be gone for long.
	if x.read == 0 || x.gone == 0 && c.Reader == nil {
		s.Done = append(s.Done, s.Begun)
	} else if x.gone == 0 {
		wait(ctx, stepTime)
	}
	x.read, x.gone = 0, 0
	return nil
}

// exportBatch is how many _ids come in one reply.
const exportBatch = 10_000

// nextIDs reads one reply of the export, which begins again where its cursor was lost.
func (x *exporting) nextIDs(ctx context.Context, c *collection, on backend.Backend, s *idsState, what cut) ([]bson.Document, error) {
	var body *bsoncore.DocumentBuilder
	if x.cursor == 0 {
		f := find{filter: what.filter, projection: fieldsOnly("_id")}
		if s.Index != "" {
			f.hint = text(s.Index)
		}
		body = f.body(c.Namespace.Collection).AppendString("comment", c.comment)
		if c.Reader != nil {
			body.StartDocument("$readPreference").AppendString("mode", "secondaryPreferred").FinishDocument()
		}
	} else {
		body = bsoncore.NewDocumentBuilder().AppendInt64("getMore", x.cursor).AppendString("collection", c.Namespace.Collection)
	}
	body.AppendInt32("batchSize", int32(min(exportBatch, x.options.Export)))
	reply, err := c.run(ctx, on, body)
	if mongoerr.Is(err, mongoerr.CursorNotFound) {
		x.cursor = 0
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	cursor, err := backend.ParseCursorReply(reply)
	if err != nil {
		return nil, err
	}
	x.cursor = cursor.ID
	return documents(cursor.Batch), nil
}

// remove sends the next batch.
func (x *exporting) remove(ctx context.Context, pace maintain.Pace) (tally, error) {
	n := min(x.size.next(pace.Share()), len(x.ids))
	n = within(idsOf(x.ids[:n]), idBytes)
	docs, left := x.ids[:n], x.ids[n:]
	watch := &stopwatch{Pace: pace, clock: x.options.Clock}
	began := x.options.Clock()
	if x.options.Archive != nil {
		var err error
		if docs, err = x.whole(ctx, docs); err != nil {
			return tally{}, err
		}
		if len(docs) > 0 { // a reply holds 16 MB: those that it lacks come next, alone
			if lack := lacking(x.ids[:n], docs); len(lack) > 0 {
				left = append(lack, left...)
			}
		}
	}
	seen := len(x.ids) - len(left)
	t, err := x.removal.remove(ctx, docs, watch)
	if err != nil {
		return t, err
	}
	t.Skipped = max(0, int64(seen)-t.Gone)
	if n == len(docs) {
		x.size.took(x.options.Clock().Sub(began) - watch.waited)
	}
	x.ids = left
	x.gone += t.Gone
	return t, nil
}

// whole reads the documents that some _ids are of, where they still match: as many as one reply holds, and none only where there are none.
func (x *exporting) whole(ctx context.Context, ids []bson.Document) ([]bson.Document, error) {
	return x.removal.collection.find(ctx, find{filter: and(among(idsOf(ids)), x.removal.filter), hint: text("_id_"), limit: len(ids)})
}

// lacking are those of some _ids of which no document was found.
func lacking(ids, found []bson.Document) []bson.Document {
	key := func(id bson.Value) string { return string(rune(id.Type)) + string(id.Data) }
	has := make(map[string]bool, len(found))
	for _, id := range idsOf(found) {
		has[key(id)] = true
	}
	var lack []bson.Document
	for i, id := range idsOf(ids) {
		if !has[key(id)] {
			lack = append(lack, ids[i])
		}
	}
	return lack
}
