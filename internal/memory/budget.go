package memory

import (
	"context"
	"sync"
	"sync/atomic"

	"oxbow/internal/mongoerr"
)

// Use is what memory is reserved for.
type Use uint8

// The uses.
const (
	Messages Use = iota // received, until they are answered
	Replies             // made, until they are sent
	Queries             // what sorts, groups and sets of running queries hold
	Cursors             // what open cursors read from, and the batches that wait in them
	uses
)

var useNames = [uses]string{"messages", "replies", "queries", "cursors"}

// String returns the use's name, as it stands in serverStatus.
func (u Use) String() string { return useNames[u] }

// share is the part of the budget that one use can have, in eighths: whoever fills one leaves room for the others.
var share = [uses]int64{Messages: 4, Replies: 4, Queries: 6, Cursors: 4}

// Budget is the memory of one process for its clients. Safe for concurrent use.
type Budget struct {
	limit   int64
	used    atomic.Int64
	peak    atomic.Int64
	by      [uses]atomic.Int64
	refused atomic.Int64
	waited  atomic.Int64

	lead    chan struct{} // holds a token while someone goes on beyond the limit, see Account.Await
	waiting atomic.Int64
	mu      struct {
		sync.Mutex
		freed chan struct{} // closed by the next release
	}
}

// New returns a budget of limit bytes.
func New(limit int64) *Budget {
	b := &Budget{limit: limit, lead: make(chan struct{}, 1)}
	b.mu.freed = make(chan struct{})
	return b
}

// Reserve takes n bytes, or fails with ExceededMemoryLimit and takes none. Whoever reserved them calls Release.
func (b *Budget) Reserve(u Use, n int64) error {
	if b == nil || n <= 0 {
		return nil
	}
	if b.take(u, n) {
		return nil
	}
	return b.refuse(u, n)
}

// refuse is the error of whoever asked for n bytes in vain.
func (b *Budget) refuse(u Use, n int64) error {
	b.refused.Add(1)
	return mongoerr.New(mongoerr.ExceededMemoryLimit, "the server has no memory left for %s: %d bytes of %d are in use, %d of them for %s, and %d more are needed. Try again later",
		u, b.used.Load(), b.limit, b.by[u].Load(), u, n)
}

// take reserves n bytes if there is room.
func (b *Budget) take(u Use, n int64) bool {
	if !addWithin(&b.by[u], n, b.limit/8*share[u]) {
		return false
	}
	if !addWithin(&b.used, n, b.limit) {
		b.by[u].Add(-n)
		return false
	}
	b.notePeak()
	return true
}

// addWithin adds n to a counter unless that comes to more than limit. A failed try is never seen by others, so it makes none of them fail.
func addWithin(counter *atomic.Int64, n, limit int64) bool {
	for {
		was := counter.Load()
		if was+n > limit {
			return false
		}
		if counter.CompareAndSwap(was, was+n) {
			return true
		}
	}
}

// force takes n bytes whatever the limit.
func (b *Budget) force(u Use, n int64) {
	b.by[u].Add(n)
	b.used.Add(n)
	b.notePeak()
}

func (b *Budget) notePeak() {
	now := b.used.Load()
	for was := b.peak.Load(); now > was && !b.peak.CompareAndSwap(was, now); was = b.peak.Load() {
	}
}

// Release gives back n bytes that were reserved for the same use.
func (b *Budget) Release(u Use, n int64) {
	if b == nil || n <= 0 {
		return
	}
	b.by[u].Add(-n)
	b.used.Add(-n)
	if b.waiting.Load() > 0 {
		b.mu.Lock()
		close(b.mu.freed)
		b.mu.freed = make(chan struct{})
		b.mu.Unlock()
	}
}

// await takes n bytes as soon as there is room and reports false, or gets the lead and reports true. The error is the context's cause.
func (b *Budget) await(ctx context.Context, u Use, n int64) (leads bool, err error) {
	b.waited.Add(1)
	b.waiting.Add(1)
	defer b.waiting.Add(-1)
	for {
		b.mu.Lock()
		freed := b.mu.freed
		b.mu.Unlock()
		if b.take(u, n) {
			return false, nil
		}
		select {
		case b.lead <- struct{}{}:
			b.force(u, n)
			return true, nil
		case <-freed:
		case <-ctx.Done():
			b.refused.Add(1)
			return false, context.Cause(ctx)
		}
	}
}

// Figures are what a budget shows, in bytes and in times since it was made.
type Figures struct {
	Limit, Used, Peak int64
	By                [uses]int64 // by Use; their sum is Used, but for what changes while they are read
	Refused           int64       // times that there was no room
	Waited            int64       // times that a message had to wait for room
}

// Figures reads them; all zero for a nil Budget.
func (b *Budget) Figures() Figures {
	if b == nil {
		return Figures{}
	}
	f := Figures{Limit: b.limit, Used: b.used.Load(), Peak: b.peak.Load(), Refused: b.refused.Load(), Waited: b.waited.Load()}
	for u := range b.by {
		f.By[u] = b.by[u].Load()
	}
	return f
}
