package command

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/exec"
	"oxbow/internal/plan"
	"oxbow/internal/query"
	"oxbow/internal/statement"
)

// reading is how a command would be run.
type reading uint8

const (
	served     reading = iota // by an index that narrows it, or on few documents
	collection                // all documents are read
	walked                    // an index is read as a whole, and filtered
)

// scans reports whether and how what a command asks would read more documents than a limit for want of an index, and how many.
func (d *Data) scans(ctx context.Context, a view, req *Request, s *scan, limit int64) (reading, int64, error) {
	g, now := d.guard, req.began
	namespace := a.source.Namespace()
	size := g.hash([]byte(namespace))
	f := g.known(&g.sizes, size, now)
	if f != nil && f.documents <= limit {
		return served, 0, nil
	}
	var room [512]byte
	shape := query.AppendShape(query.AppendShape(room[:0], s.filter), s.sort)
	key := g.hash([]byte(namespace), []byte(req.Name), shape, []byte(s.distinct), optionsOf(req, s))
	if g.known(&g.served, key, now) != nil {
		return served, 0, nil
	}
	ctx, cancel := context.WithTimeout(exec.WithExchange(ctx, &exec.Exchange{}), guardPatience)
	defer cancel()
	epoch := g.epoch.Load()
	if f == nil {
		n, err := d.documents(ctx, a, nil)
		if err != nil {
			return served, 0, err
		}
		g.note(&g.sizes, size, epoch, n, now.Add(guardKnows))
		if n <= limit {
			return served, 0, nil
		}
	}
	targets, how, err := d.explainsScan(ctx, a, req, s)
	if err != nil {
		return served, 0, err
	}
	if how == served {
		if !dependsOnValue(s.filter) {
			g.note(&g.served, key, epoch, 0, now.Add(guardKnows))
		}
		return served, 0, nil
	}
	n, err := d.documents(ctx, a, targets)
	if n <= limit {
		how = served
	}
	return how, n, err
}

// documents counts the documents of a plain collection, or of partitions of a layout, all where none are named, from the backends' own figures.
func (d *Data) documents(ctx context.Context, a view, targets []plan.Target) (int64, error) {
	p, err := plan.NewCount(&statement.Count{}, a.source, d.env())
	if err != nil {
		return 0, err
	}
	if targets != nil {
		p.Routed.Targets = targets
	}
	return d.Exec.Count(ctx, p)
}

// explainsScan asks how a statement would be run, and reports whether it reads the collection or an index as a whole; and of which partitions. All
// partitions of a layout have the same indexes: one that is there tells for all.
func (d *Data) explainsScan(ctx context.Context, a view, req *Request, s *scan) ([]plan.Target, reading, error) {
	inner := explainable(req, s)
	if a.source.Collection == nil {
		reply, err := d.Exec.Run(ctx, a.source.Backend, &backend.Request{Body: explainOf(inner.Body, a.source.Database)})
		if err == nil {
			err = backend.Check(reply)
		}
		if err != nil {
			return nil, served, err
		}
		return nil, s.readingOf(reply), nil
	}
	p, err := d.planExplain(a, inner)
	if err != nil {
		return nil, served, err
	}
	all := p.Routed.Targets
	for i := range all {
		one := *p
		one.Routed.Targets = all[i : i+1]
		parts, err := d.Exec.Explain(ctx, &one, "queryPlanner")
		if err != nil {
			return nil, served, err
		}
		if !backend.PlansNothing(parts[0]) {
			return all, s.readingOf(parts[0]), nil
		}
	}
	return all, served, nil
}

// readingOf tells from an explain's reply how a statement would be run. An index that is walked for its order serves the sort.
func (s *scan) readingOf(explained bson.Document) reading {
	switch {
	case backend.ScansCollection(explained):
		return collection
	case len(s.filter) > len(emptyDocument) && len(s.sort) <= len(emptyDocument) && backend.WalksIndex(explained):
		return walked
	}
	return served
}

func explainOf(command bson.Document, database string) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendDocumentElement(dst, "explain", command)
	dst = bsoncore.AppendStringElement(dst, "verbosity", "queryPlanner")
	dst = bsoncore.AppendStringElement(dst, "$db", database)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
