package exec

import (
	"container/list"
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// DefaultWidth is how many partitions one command is sent to at a time where its layout does not say it.
const DefaultWidth = 16

// Lanes bounds how many commands to partitions all commands together have under way beyond the one that each may always have: the lanes. A command
// begins on the goroutine that it came on and goes on there, partition after partition, whatever the others do; as far as lanes are free and its layout allows,
// further partitions are taken by others at the same time. So nothing ever waits for a lane, and work inside of work can't lock itself out; under load
// commands become slower before they are queued, and queues with their limits are those of the backends.
//
// Lanes go round: after each partition a lane passes to the command that has wanted one for longest. Nil: without limit. Safe for concurrent use.
type Lanes struct {
	sizes Sizes
	mu    struct {
		sync.Mutex
		limit   int
		taken   int
		wanting list.List // of *fan, each once
	}
}

// NewLanes returns limit lanes.
func NewLanes(limit int) *Lanes {
	l := &Lanes{}
	l.SetLimit(limit)
	return l
}

// SetLimit changes the number of lanes. Those in use stay until they have done their partition.
func (l *Lanes) SetLimit(limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.limit = limit
	l.grantLocked()
}

// LanesFigures are how the lanes are used.
type LanesFigures struct {
	Limit, Taken int
	Wanting      int // commands that could use one more
	Sizes        *Sizes
}

// Figures returns how the lanes are used.
func (l *Lanes) Figures() LanesFigures {
	l.mu.Lock()
	defer l.mu.Unlock()
	return LanesFigures{Limit: l.mu.limit, Taken: l.mu.taken, Wanting: l.mu.wanting.Len(), Sizes: &l.sizes}
}

// SizeBounds are the upper bounds of the classes that Sizes counts.
var SizeBounds = [...]int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}

// Sizes counts fan-outs by the number of partitions that they went to.
type Sizes struct {
	Counts [len(SizeBounds) + 1]atomic.Uint64 // the last: more than the last bound
	Sum    atomic.Uint64
}

func (s *Sizes) note(n int) {
	class := 0
	for class < len(SizeBounds) && n > SizeBounds[class] {
		class++
	}
	s.Counts[class].Add(1)
	s.Sum.Add(uint64(n))
}

// fan is the work of one command, one call a partition.
type fan struct {
	lanes *Lanes
	ctx   context.Context
	end   context.CancelFunc
	n     int
	do    func(ctx context.Context, i int) error

	next atomic.Int64
	wait sync.WaitGroup // of the lanes

	// Guarded by the lock of the lanes.
	wants int
	at    *list.Element // among those that want a lane
	over  bool          // nothing more is wanted

	failure struct {
		sync.Mutex
		err   error
		panic any
	}
}

// spread calls do for each i below n, as many at a time as the collection's layout and the lanes allow; of one there is no more than the call. After an
// error, which it returns, no further call begins, and the context of those under way ends.
func (e *Executor) spread(ctx context.Context, collection string, n int, do func(ctx context.Context, i int) error) error {
	if e.Lanes != nil && n > 0 {
		e.Lanes.sizes.note(n)
	}
	switch n {
	case 0:
		return nil
	case 1:
		return do(ctx, 0)
	}
	f := &fan{lanes: e.Lanes, n: n, do: do}
	f.ctx, f.end = context.WithCancel(ctx)
	defer f.end()
	i, more := f.take()
	f.lanes.ask(f, min(n, e.width(collection))-1)
	for ; more; i, more = f.take() {
		f.call(i)
	}
	f.lanes.withdraw(f)
	f.wait.Wait()
	if f.failure.panic != nil {
		panic(f.failure.panic)
	}
	return f.failure.err
}

// width is how many partitions one command on a collection is sent to at a time.
func (e *Executor) width(collection string) int {
	if e.Width != nil {
		if w := e.Width(collection); w > 0 {
			return w
		}
	}
	return DefaultWidth
}

// take gives out the next call; false when there is none.
func (f *fan) take() (i int, ok bool) {
	i = int(f.next.Add(1)) - 1
	return i, i < f.n && !f.failed()
}

// call makes a call. A panic goes on where the command is, when the other calls have ended.
func (f *fan) call(i int) {
	defer func() {
		if p := recover(); p != nil {
			f.fail(nil, fmt.Sprintf("%v\n%s", p, debug.Stack()))
		}
	}()
	if err := f.do(f.ctx, i); err != nil {
		f.fail(err, nil)
	}
}

func (f *fan) failed() bool {
	f.failure.Lock()
	defer f.failure.Unlock()
	return f.failure.err != nil || f.failure.panic != nil
}

// fail keeps the first failure and ends the others' context.
func (f *fan) fail(err error, panicked any) {
	f.failure.Lock()
	defer f.failure.Unlock()
	if f.failure.err == nil && f.failure.panic == nil {
		f.failure.err, f.failure.panic = err, panicked
	}
	f.end()
}

// run is a lane: it makes a call and further ones until there are none, or another command wants the lane.
func (f *fan) run(i int) {
	defer f.wait.Done()
	for more := true; more; i, more = f.take() {
		f.call(i)
		if !f.lanes.keep(f) {
			return
		}
	}
	f.lanes.free()
}

// start begins a lane with the next call; false when there is none.
func (f *fan) start() bool {
	i, ok := f.take()
	if ok {
		f.wait.Add(1)
		go f.run(i)
	}
	return ok
}

// ask gives a command the lanes that it wants, now or as they become free.
func (l *Lanes) ask(f *fan, wants int) {
	if l == nil {
		for range wants {
			f.start()
		}
		return
	}
	if wants == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f.wants = wants
	f.at = l.mu.wanting.PushBack(f)
	l.grantLocked()
}

// grantLocked gives free lanes to the commands that want one, in turn: one that wants more is the last again.
func (l *Lanes) grantLocked() {
	for first := l.mu.wanting.Front(); first != nil && l.mu.taken < l.mu.limit; first = l.mu.wanting.Front() {
		f := first.Value.(*fan)
		if f.start() {
			l.mu.taken++
			f.wants--
		} else {
			f.wants = 0
		}
		if f.wants > 0 {
			l.mu.wanting.MoveToBack(first)
			continue
		}
		l.mu.wanting.Remove(first)
		f.at = nil
	}
}

// withdraw ends a command's wants.
func (l *Lanes) withdraw(f *fan) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f.over = true
	if f.at != nil {
		l.mu.wanting.Remove(f.at)
		f.at = nil
	}
}

// keep reports whether a lane goes on with its command after a call: it does unless others want it, or there are too many.
func (l *Lanes) keep(f *fan) bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.mu.wanting.Front()
	alone := first == nil || first == f.at && first.Next() == nil
	if alone && l.mu.taken <= l.mu.limit {
		return true
	}
	if !f.over {
		if f.wants++; f.at == nil {
			f.at = l.mu.wanting.PushBack(f)
		}
	}
	l.mu.taken--
	l.grantLocked()
	return false
}

// free gives a lane back.
func (l *Lanes) free() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.taken--
	l.grantLocked()
}
