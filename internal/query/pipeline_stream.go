package query

import (
	"context"

	"oxbow/internal/bson"
	"oxbow/internal/memory"
)

// mapped makes at most one document of each. apply may build it in dst, which it gives back for the next one; a nil document is left out.
type mapped struct {
	in      Documents
	scratch Scratch
	dst     []byte
	apply   func(s *Scratch, dst []byte, doc bson.Document) (out bson.Document, buffer []byte, err error)
}

func (m *mapped) Next(ctx context.Context) (bson.Document, error) {
	m.scratch.ctx = ctx
	for {
		doc, err := m.in.Next(ctx)
		if err != nil || doc == nil {
			return nil, err
		}
		var out bson.Document
		if out, m.dst, err = m.apply(&m.scratch, m.dst, doc); err != nil || out != nil {
			return out, err
		}
	}
}

func (m *mapped) Close() error { return m.in.Close() }

// limited ends after so many documents.
type limited struct {
	Documents
	left int64
}

func (l *limited) Next(ctx context.Context) (bson.Document, error) {
	if l.left <= 0 {
		return nil, nil
	}
	l.left--
	return l.Documents.Next(ctx)
}

// skipped leaves out so many documents at the beginning.
type skipped struct {
	Documents
	left int64
}

func (s *skipped) Next(ctx context.Context) (bson.Document, error) {
	for ; s.left > 0; s.left-- {
		if doc, err := s.Documents.Next(ctx); err != nil || doc == nil {
			return nil, err
		}
	}
	return s.Documents.Next(ctx)
}

// gathered reads its whole input before its first document.
type gathered struct {
	in      Documents
	scratch Scratch
	read    bool
	memory  memory.Account
	// add takes a document of the input; next gives those of the output, nil at the end.
	add  func(s *Scratch, doc bson.Document) error
	next func(s *Scratch) (bson.Document, error)
}

func (g *gathered) Next(ctx context.Context) (bson.Document, error) {
	g.scratch.ctx = ctx
	if !g.read {
		if err := g.readAll(ctx); err != nil {
			return nil, err
		}
		g.read = true
	}
	doc, err := g.next(&g.scratch)
	if doc == nil && err == nil {
		g.memory.Close()
	}
	return doc, err
}

func (g *gathered) readAll(ctx context.Context) error {
	for {
		doc, err := g.in.Next(ctx)
		if err != nil || doc == nil {
			return err
		}
		if err := g.add(&g.scratch, doc); err != nil {
			return err
		}
	}
}

func (g *gathered) Close() error {
	g.memory.Close()
	g.add, g.next = nil, func(*Scratch) (bson.Document, error) { return nil, nil }
	return g.in.Close()
}
