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

// Part is a part of a collection that can be dropped whole.
type Part struct {
	Name      string // in commands, checkpoints and logs
	Backend   backend.Backend
	Namespace backend.Namespace // physical
	Field     string            // by whose time documents lie in it; "": its name tells it
	Start     time.Time         // of what lies in it
	End       time.Time         // behind it
	Documents int64             // -1: not known
	Bytes     int64             // of the documents, -1: not known
}

// Parts are the parts of a collection.
type Parts interface {
	// List returns the parts, oldest first.
	List(ctx context.Context) ([]Part, error)
	// Hide makes sure, where that can be, that nothing is written to a part any more.
	Hide(ctx context.Context, p Part) error
	// Drop drops a part for good.
	Drop(ctx context.Context, p Part) error
}

// dropping is the strategy Drop.
type dropping struct{ options Options }

// dropState is a checkpoint of Drop.
type dropState struct {
	Now      int64           `bson:"now"`
	Part     string          `bson:"part"` // that is being archived
	Archived int64           `bson:"archived"`
	Last     driver.RawValue `bson:"last,omitempty"` // _id of the last document that was
}

// Step implements maintain.Job: it drops the oldest part whose time is over; with an archive it archives more of it before.
func (d *dropping) Step(ctx context.Context, checkpoint bson.Document, pace maintain.Pace) (maintain.Outcome, error) {
	s := dropState{Now: d.options.Clock().UnixMilli()}
	if checkpoint != nil {
		if err := driver.Unmarshal(checkpoint, &s); err != nil {
			return maintain.Outcome{}, fmt.Errorf("read the checkpoint: %w", err)
		}
	}
	due, err := d.due(ctx, &s)
	if err != nil {
		return maintain.Outcome{}, err
	}
	if len(due) == 0 {
		return maintain.Outcome{Done: true}, nil
	}
	if err := pace.Wait(ctx, 0, 0); err != nil {
		return maintain.Outcome{}, err
	}
	out := maintain.Outcome{}
	p := due[0]
	whole := d.options.Archive == nil
	if !whole {
		if whole, err = d.archive(ctx, &s, p, pace); err != nil {
			return out, err
		}
	}
	if whole {
		if err := d.options.Parts.Drop(ctx, p); err != nil {
			return out, fmt.Errorf("drop %s: %w", p.Name, err)
		}
		d.options.Log.Info("dropped a part", "part", p.Name, "documents", p.Documents, "ended", p.End.UTC())
		out.Documents, out.Bytes = max(0, p.Documents), max(0, p.Bytes)
		out.Done, due = len(due) == 1, due[1:]
		s = dropState{Now: s.Now}
	}
	for _, p := range due {
		if out.Remaining >= 0 && p.Documents >= 0 {
			out.Remaining += p.Documents
		} else {
			out.Remaining = -1
		}
	}
	out.Checkpoint, err = driver.Marshal(&s)
	return out, err
}

// due are the parts whose time is over.
func (d *dropping) due(ctx context.Context, s *dropState) ([]Part, error) {
	all, err := d.options.Parts.List(ctx)
	if mongoerr.Is(err, mongoerr.CommandNotFound) || mongoerr.Is(err, mongoerr.NamespaceNotFound) {
		return nil, &Refusal{Reason: fmt.Sprintf("there are no partitions of a time layout to drop: %v; collections that hold a day each are named by parts", err)}
	}
	if err != nil {
		return nil, fmt.Errorf("list what may be dropped: %w", err)
	}
	var due []Part
	for _, p := range all {
		if err := d.options.Predicate.tellsTimeOf(p); err != nil {
			return nil, err
		}
		if d.options.Predicate.wholly(p, milliTime(s.Now)) {
			due = append(due, p)
		}
	}
	return due, nil
}

// tellsTimeOf refuses a part whose documents lie in it by another field than the Predicate's: by that one they may have to stay.
func (p *Predicate) tellsTimeOf(part Part) error {
	if p.Field == "" || part.Field == "" || p.Field == part.Field {
		return nil
	}
	return &Refusal{Reason: fmt.Sprintf("%s is split by %s and not by %s, so what it holds can't be dropped by that", part.Name, part.Field, p.Field)}
}

// wholly reports whether all the time of a part lies before the cut, and none of it before From.
func (p *Predicate) wholly(part Part, now time.Time) bool {
	return !part.Start.Before(p.from()) && !part.End.After(p.instant(now))
}

// archive archives more of a part, for about a second, and reports whether all of it is archived.
func (d *dropping) archive(ctx context.Context, s *dropState, p Part, pace maintain.Pace) (bool, error) {
	if s.Part != p.Name {
		if err := d.options.Parts.Hide(ctx, p); err != nil {
			return false, fmt.Errorf("hide %s: %w", p.Name, err)
		}
		*s = dropState{Now: s.Now, Part: p.Name}
	}
	c := d.options.on(Target{Backend: p.Backend, Namespace: p.Namespace})
	as := d.options.ArchiveAs
	if as.Collection == "" {
		as = p.Namespace
	}
	for until := d.options.Clock().Add(stepTime); d.options.Clock().Before(until) && ctx.Err() == nil; {
		if err := pace.Wait(ctx, 0, 0); err != nil {
			return false, err
		}
		docs, err := c.after(ctx, value(s.Last), d.options.Batch)
		if err != nil {
			return false, err
		}
		if len(docs) == 0 {
			return true, d.reconcile(ctx, c, s, p)
		}
		if err := d.options.Archive.Append(as, docs); err != nil {
			return false, fmt.Errorf("archive %d documents: %w", len(docs), err)
		}
		id, _ := bson.Get(docs[len(docs)-1], "_id")
		s.Archived += int64(len(docs))
		s.Last = raw(id)
	}
	return false, nil
}

// reconcile makes sure that what is about to be dropped is what was archived.
func (d *dropping) reconcile(ctx context.Context, c *collection, s *dropState, p Part) error {
	n, err := c.count(ctx, nil, bson.Value{}, 0)
	if err != nil {
		return err
	}
	if n != s.Archived {
		return &Refusal{Reason: fmt.Sprintf("%s holds %d documents, and %d are archived: something still writes to it", p.Name, n, s.Archived)}
	}
	return nil
}

// after returns the documents behind an _id, in the order of _id over all types; Type 0: from the first one on.
func (c *collection) after(ctx context.Context, id bson.Value, limit int) ([]bson.Document, error) {
	f := find{sort: ascending("_id"), hint: text("_id_"), limit: limit}
	if id.Type != 0 {
		f.min = bson.Document(bsoncore.NewDocumentBuilder().AppendValue("_id", id).Build())
		f.filter = without([]bson.Value{id}) // where it came too, it might be all that fits into a batch
	}
	return c.find(ctx, f)
}
