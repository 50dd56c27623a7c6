package exec

import (
	"bytes"
	"context"
	"errors"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/plan"
	"oxbow/internal/query"
)

// closeTimeout bounds the killing of a stream's cursors on the backends, of all together.
const closeTimeout = 5 * time.Second

// source is a stream that can say where its last document came from.
type source interface {
	Next(ctx context.Context) (bson.Document, error)
	Close() error
	// Target is where the last document came from.
	Target() plan.Target
	// kill is Close within a time that several streams share.
	kill(ctx context.Context) error
}

// closed closes a stream. It must not depend on the command's context, which may have ended.
func closed(s source) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return s.kill(ctx)
}

// Target is where the documents come from.
func (s *targetStream) Target() plan.Target { return s.target }

// sequence is streams one after the other.
type sequence struct {
	of []source
	at int
}

func (s *sequence) Next(ctx context.Context) (bson.Document, error) {
	for s.at < len(s.of) {
		doc, err := s.of[s.at].Next(ctx)
		if doc != nil || err != nil {
			return doc, err
		}
		if err := s.of[s.at].Close(); err != nil {
			return nil, err
		}
		s.at++
	}
	return nil, nil
}

func (s *sequence) Target() plan.Target { return s.of[min(s.at, len(s.of)-1)].Target() }

func (s *sequence) Close() error { return closed(s) }

// kill closes the stream that is being read: those before it have ended, those behind it are not open yet.
func (s *sequence) kill(ctx context.Context) error {
	if s.at >= len(s.of) {
		return nil
	}
	return s.of[s.at].kill(ctx)
}

// merge is ordered streams merged into one order. Each holds one document ahead; the heap orders them by their sort keys, and
// by target where keys are equal, so that the order of a merge is stable.
type merge struct {
	exec       *Executor
	collection string

	order   *query.Sort
	of      []source
	heap    []*head
	last    *head // whose document was given out: it moves on at the next Next
	started bool
}

// head is a stream and its first document that is not yet given out.
type head struct {
	stream source
	rank   int
	doc    bson.Document
	key    []byte
}

func (m *merge) Next(ctx context.Context) (bson.Document, error) {
	if err := m.advance(ctx); err != nil {
		return nil, err
	}
	if len(m.heap) == 0 {
		return nil, nil
	}
	m.last = m.heap[0]
	return m.last.doc, nil
}

// advance moves the stream on whose document was given out last, or opens all.
func (m *merge) advance(ctx context.Context) error {
	if !m.started {
		m.started = true
		return m.start(ctx)
	}
	if m.last == nil {
		return nil
	}
	h := m.last
	m.last = nil
	if err := h.fill(ctx, m.order); err != nil {
		return err
	}
	if h.doc == nil {
		n := len(m.heap) - 1
		m.heap[0] = m.heap[n]
		m.heap = m.heap[:n]
		if err := h.stream.Close(); err != nil {
			return err
		}
	}
	m.down(0)
	return nil
}

// start opens all streams, several at a time, and builds the heap.
func (m *merge) start(ctx context.Context) error {
	heads := make([]*head, len(m.of))
	for i, s := range m.of {
		heads[i] = &head{stream: s, rank: i}
	}
	err := m.exec.spread(ctx, m.collection, len(heads), func(ctx context.Context, i int) error { return heads[i].fill(ctx, m.order) })
	if err != nil {
		return err
	}
	for _, h := range heads {
		if h.doc != nil {
			m.heap = append(m.heap, h)
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	return nil
}

// fill fetches the stream's next document and its key.
func (h *head) fill(ctx context.Context, order *query.Sort) (err error) {
	if h.doc, err = h.stream.Next(ctx); err != nil || h.doc == nil {
		return err
	}
	h.key, err = order.AppendKey(h.key[:0], h.doc)
	return err
}

func (h *head) less(other *head) bool {
	if c := bytes.Compare(h.key, other.key); c != 0 {
		return c < 0
	}
	return h.rank < other.rank
}

// down restores the heap below i.
func (m *merge) down(i int) {
	for {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(m.heap) && m.heap[child].less(m.heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		m.heap[i], m.heap[least] = m.heap[least], m.heap[i]
		i = least
	}
}

func (m *merge) Target() plan.Target { return m.last.stream.Target() }

func (m *merge) Close() error { return closed(m) }

// kill kills the cursors of all streams, several at a time. One that fails keeps no other from being tried.
func (m *merge) kill(ctx context.Context) error {
	errs := make([]error, len(m.of))
	_ = m.exec.spread(ctx, m.collection, len(errs), func(ctx context.Context, i int) error {
		errs[i] = m.of[i].kill(ctx)
		return nil
	})
	return errors.Join(errs...)
}
