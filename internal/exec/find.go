package exec

import (
	"context"
	"sync/atomic"

	"oxbow/internal/bson"
	"oxbow/internal/plan"
	"oxbow/internal/query"
)

// Find returns the documents of a plan as one stream; nothing is sent before its first Next. Closing it closes the backends' cursors.
func (e *Executor) Find(p *plan.Find) query.Documents { return e.find(p) }

func (e *Executor) find(p *plan.Find) source {
	var groups []source
	var leftOut *atomic.Bool
	if p.AllowPartial {
		leftOut = new(atomic.Bool)
	}
	for _, targets := range p.Groups {
		if g := e.group(p, targets, leftOut); g != nil {
			groups = append(groups, g)
		}
	}
	var s source
	switch len(groups) {
	case 0:
		s = empty{}
	case 1:
		s = groups[0]
	default:
		s = &sequence{of: groups}
	}
	if p.Skip > 0 || p.Limit > 0 {
		s = &window{source: s, skip: p.Skip, limit: p.Limit}
	}
	if p.Projection != nil {
		s = &projected{source: s, projection: p.Projection}
	}
	if leftOut != nil {
		s = &partial{source: s, leftOut: leftOut}
	}
	return s
}

// partial is a stream that may leave targets out, and says so from then on.
type partial struct {
	source
	leftOut *atomic.Bool
}

// Partial reports whether a target was left out.
func (p *partial) Partial() bool { return p.leftOut.Load() }

// group merges the targets of one group. leftOut is set when one is left out; nil: none may be.
func (e *Executor) group(p *plan.Find, targets []plan.Target, leftOut *atomic.Bool) source {
	streams := make([]source, len(targets))
	for i, t := range targets {
		s := e.stream(t)
		s.command, s.batchSize, s.leftOut = p.Command, p.BatchSize, leftOut
		streams[i] = s
	}
	switch {
	case len(streams) == 0:
		return nil
	case len(streams) == 1:
		return streams[0]
	case p.Sort == nil:
		return &sequence{of: streams}
	}
	return &merge{exec: e, collection: collectionOf(targets), order: p.Sort, of: streams}
}

// empty is no documents.
type empty struct{}

func (empty) Next(context.Context) (bson.Document, error) { return nil, nil }
func (empty) Target() plan.Target                         { return plan.Target{} }
func (empty) Close() error                                { return nil }
func (empty) kill(context.Context) error                  { return nil }

// window is a stream's documents behind skip, at most limit of them.
type window struct {
	source
	skip  int64
	limit int64 // 0: none
	given int64
}

func (w *window) Next(ctx context.Context) (bson.Document, error) {
	if w.limit > 0 && w.given == w.limit {
		return nil, w.Close()
	}
	for ; w.skip > 0; w.skip-- {
		if doc, err := w.source.Next(ctx); doc == nil || err != nil {
			return nil, err
		}
	}
	w.given++
	return w.source.Next(ctx)
}

// projected is a stream with a projection applied.
type projected struct {
	source
	projection *query.Projection
	buf        []byte
}

func (p *projected) Next(ctx context.Context) (bson.Document, error) {
	doc, err := p.source.Next(ctx)
	if doc == nil || err != nil {
		return nil, err
	}
	p.buf, err = p.projection.Apply(p.buf[:0], doc)
	return p.buf, err
}
