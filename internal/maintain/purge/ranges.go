package purge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bson"
	"oxbow/internal/maintain"
)

// ranging is the strategy Ranges.
type ranging struct {
	options  Options
	emptiers []*emptier // one a target, nil: not known yet
	size     *sizing
	lost     bool // an index that the checkpoint names
}

// stepTime is how long a step goes on: so much is done again, at most, when its checkpoint was not stored.
const stepTime = time.Second

// cellsPerWorker is how many cells there are at first for each worker, so that workers end about the same time though cells are not alike.
const cellsPerWorker = 16

// rangesState is a checkpoint of Ranges.
type rangesState struct {
	Now     int64         `bson:"now"` // at the pass's beginning, in milliseconds
	Path    string        `bson:"path"`
	Targets []rangeTarget `bson:"targets"`
	Cells   []*cell       `bson:"cells"`
	Total   int64         `bson:"total"` // documents that were to go, -1: not known
	Tally   tally         `bson:"tally"`
}

// rangeTarget is a target and how it is reached.
type rangeTarget struct {
	Name  string          `bson:"name"`
	Index string          `bson:"index"`
	Held  bson.Document   `bson:"held,omitempty"`
	Low   driver.RawValue `bson:"low"` // first key and last key, to tell how far it is
	High  driver.RawValue `bson:"high"`
}

// Step implements maintain.Job.
func (r *ranging) Step(ctx context.Context, checkpoint bson.Document, pace maintain.Pace) (maintain.Outcome, error) {
	if checkpoint == nil {
		return r.begin(ctx, pace)
	}
	var s rangesState
	if err := driver.Unmarshal(checkpoint, &s); err != nil {
		return maintain.Outcome{}, fmt.Errorf("read the checkpoint: %w", err)
	}
	if err := s.check(); err != nil {
		return maintain.Outcome{}, maintain.Permanent(fmt.Errorf("read the checkpoint: %w", err))
	}
	if r.emptiers == nil {
		if err := r.prepare(ctx, &s); err != nil {
			return maintain.Outcome{}, err
		}
	}
	if err := s.Tally.look(0, 0, r.options.MaxRatio); err != nil {
		return maintain.Outcome{}, err
	}
	r.split(&s)
	did, err := r.work(ctx, &s, pace)
	if hintGone(err) {
		r.lost, r.emptiers = true, nil
	}
	if err != nil && did.Gone == 0 {
		return maintain.Outcome{}, err // else it comes again in the next step
	}
	s.Tally.add(did)
	out := did.outcome()
	out.Done = len(s.Cells) == 0
	out.Remaining = s.remaining()
	out.Checkpoint, err = driver.Marshal(&s)
	return out, err
}

// check says what is wrong with a checkpoint that somebody else has written.
func (s *rangesState) check() error {
	if s.Now <= 0 {
		return errors.New("it has no time at which the pass began")
	}
	for _, c := range s.Cells {
		if c == nil || c.Target < 0 || c.Target >= len(s.Targets) {
			return errors.New("a range is of no target")
		}
		if c.Low.Type == 0 || c.High.Type == 0 {
			return errors.New("a range has no end")
		}
	}
	for _, t := range s.Targets {
		if t.Low.Type == 0 || t.High.Type == 0 {
			return errors.New("a target has no first or no last key")
		}
	}
	return nil
}

// begin fixes what goes and cuts the key into cells.
func (r *ranging) begin(ctx context.Context, pace maintain.Pace) (maintain.Outcome, error) {
	if err := pace.Wait(ctx, 0, 0); err != nil {
		return maintain.Outcome{}, err
	}
	now := r.options.Clock().UnixMilli()
	what := r.options.Predicate.at(milliTime(now))
	key := what.time
	if key.path == "" {
		var ok bool
		if key, ok = boundedSpan(what.filter); !ok {
			return maintain.Outcome{}, &Refusal{Reason: "ranges needs a key that the filter bounds by comparisons, such as {_id: {$lt: …}}: use ids"}
		}
	} else if key.empty() {
		return maintain.Outcome{Done: true}, nil
	}
	targets, err := r.options.Targets(ctx)
	if err != nil {
		return maintain.Outcome{}, fmt.Errorf("list what documents go from: %w", err)
	}
	s := rangesState{Now: now, Path: key.path}
	for _, t := range targets {
		if err := r.cut(ctx, &s, what, key, t, len(targets)); err != nil {
			return maintain.Outcome{}, err
		}
	}
	out := maintain.Outcome{Done: len(s.Cells) == 0, Remaining: s.Total}
	out.Checkpoint, err = driver.Marshal(&s)
	return out, err
}

// totalTime is how long a job counts the documents of one target that go, before it gives that up and tells no remainder: counting has no pace.
const totalTime = 100 * time.Millisecond

// cut adds one target's cells.
func (r *ranging) cut(ctx context.Context, s *rangesState, what cut, key span, t Target, targets int) error {
	c := r.options.on(t)
	a, err := c.keyed(ctx, what, key.path)
	if err != nil {
		return err
	}
	first, last, ok, err := c.ends(ctx, key, a)
	if err != nil || !ok {
		return err
	}
	at := len(s.Targets)
	s.Targets = append(s.Targets, rangeTarget{t.name(), a.index, a.held, raw(first), raw(last)})
	if n, err := c.count(ctx, what.filter, a.hint(), totalTime); err == nil && s.Total >= 0 {
		s.Total += n
	} else {
		s.Total = -1
	}
	// Documents that come behind the last one while the job runs belong to it as far as the cut says so.
	end := span{path: key.path, lo: first, hi: last, closed: true}
	if key.hi.Type != 0 {
		end.hi, end.closed = key.hi, key.closed
	}
	n := max(1, cellsPerWorker*r.options.Workers/targets)
	sample := inOrder(c.sample(ctx, key.path, n), first, last)
	for _, v := range borders(first, last, n, sample) {
		part := end
		part.hi, part.closed = v, false
		s.Cells = append(s.Cells, newCell(at, part))
		end.lo = v
	}
	s.Cells = append(s.Cells, newCell(at, end))
	return nil
}

// prepare makes ready to work on a checkpoint's targets.
func (r *ranging) prepare(ctx context.Context, s *rangesState) error {
	targets, err := r.options.Targets(ctx)
	if err != nil {
		return fmt.Errorf("list what documents go from: %w", err)
	}
	byName := make(map[string]Target, len(targets))
	for _, t := range targets {
		byName[t.name()] = t
	}
	r.size = newSizing(r.options.Batch)
	filter := r.options.Predicate.at(milliTime(s.Now)).filter
	emptiers := make([]*emptier, len(s.Targets))
	for i, saved := range s.Targets {
		t, ok := byName[saved.Name]
		if !ok {
			continue // a partition that was dropped since
		}
		a := access{saved.Index, saved.Held}
		if r.lost {
			if a, err = r.options.on(t).keyed(ctx, cut{filter: filter}, s.Path); err != nil {
				return err
			}
			s.Targets[i].Index, s.Targets[i].Held = a.index, a.held
		}
		emptiers[i] = r.options.emptier(ctx, r.options.on(t), filter, s.Path, a, r.size)
	}
	r.emptiers, r.lost = emptiers, false
	return nil
}

// emptier is what empties cells of a collection.
func (o *Options) emptier(ctx context.Context, c *collection, filter bson.Document, path string, a access, size *sizing) *emptier {
	return &emptier{
		removal: o.removal(ctx, c, filter), path: path, access: a, size: size, clock: o.Clock,
	}
}

func (o *Options) removal(ctx context.Context, c *collection, filter bson.Document) removal {
	r := removal{collection: c, filter: filter, archive: o.Archive, archiveAs: o.ArchiveAs, average: c.average(ctx)}
	if r.archiveAs.Collection == "" {
		r.archiveAs = c.Namespace
	}
	// The pace counts bytes of the oplog and, where there is none, of the documents.
	r.entry = OplogBytes(c.Namespace.String(), bson.Value{Type: bson.TypeObjectID, Data: make([]byte, 12)})
	if c.Backend.Abilities().Embedded {
		r.entry = r.average
	}
	return r
}

// split halves the longest cells while there are fewer than workers.
func (r *ranging) split(s *rangesState) {
	for n := len(s.Cells); n > 0 && n < r.options.Workers; n++ {
		best, most := -1, 0.0
		for i, c := range s.Cells {
			t := s.Targets[c.Target]
			from, ok := shareOf(value(t.Low), value(t.High), value(c.Low))
			to, also := shareOf(value(t.Low), value(t.High), value(c.High))
			if ok && also && to-from > most {
				best, most = i, to-from
			}
		}
		if best < 0 {
			return
		}
		c := s.Cells[best]
		middle, ok := between(value(c.Low), value(c.High), 0.5)
		if !ok || bson.Compare(middle, value(c.Low)) <= 0 || bson.Compare(middle, value(c.High)) >= 0 {
			return
		}
		upper := c.span("")
		upper.lo, upper.open = middle, false
		c.High, c.Closed = raw(middle), false
		s.Cells = append(s.Cells, newCell(c.Target, upper))
	}
}

// work lets the workers empty cells for the time of a step. What was done is told also with an error.
func (r *ranging) work(ctx context.Context, s *rangesState, pace maintain.Pace) (tally, error) {
	w := &shift{ranging: r, until: r.options.Clock().Add(stepTime), waiting: s.Cells, ratio: s.Tally}
	var workers sync.WaitGroup
	for range r.options.Workers {
		workers.Go(func() { w.work(ctx, pace) })
	}
	workers.Wait()
	s.Cells = w.left()
	s.Tally.Examined, s.Tally.Taken = w.ratio.Examined, w.ratio.Taken
	return w.did, w.err
}

// shift is one step's work.
type shift struct {
	*ranging
	until time.Time

	mu      sync.Mutex
	waiting []*cell // nobody works on them, and some of them may be done
	over    []*cell // their time in this step is over
	did     tally
	ratio   tally // what was examined lately
	err     error
}

// work empties one cell after the other.
func (w *shift) work(ctx context.Context, pace maintain.Pace) {
	for c := w.next(); c != nil; c = w.next() {
		for !c.done && w.more(ctx) {
			w.batch(ctx, c, pace)
		}
		w.put(c)
		if !w.more(ctx) {
			return
		}
	}
}

// batch takes one batch of a cell away and counts it.
func (w *shift) batch(ctx context.Context, c *cell, pace maintain.Pace) {
	e := w.emptiers[c.Target]
	if e == nil {
		c.done = true
		return
	}
	t, err := e.batch(ctx, c, pace)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.did.add(t)
	if err == nil {
		err = w.ratio.look(t.Examined, t.Taken, w.options.MaxRatio)
	}
	if err != nil && w.err == nil {
		w.err = err
	}
}

func (w *shift) more(ctx context.Context) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err == nil && ctx.Err() == nil && w.options.Clock().Before(w.until)
}

func (w *shift) next() *cell {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		return nil
	}
	c := w.waiting[0]
	w.waiting = w.waiting[1:]
	return c
}

func (w *shift) put(c *cell) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = append(w.over, c)
}

// left are the cells that still hold something.
func (w *shift) left() []*cell {
	var left []*cell
	for _, c := range append(w.over, w.waiting...) {
		if !c.done {
			left = append(left, c)
		}
	}
	return left
}

// remaining is how many documents are still to go, by their number at the beginning, or else by the part of the key that is done.
func (s *rangesState) remaining() int64 {
	if len(s.Cells) == 0 {
		return 0
	}
	if s.Total >= 0 {
		return max(0, s.Total-s.Tally.Gone)
	}
	left, whole := 0.0, float64(len(s.Targets))
	for _, c := range s.Cells {
		t := s.Targets[c.Target]
		from, ok := shareOf(value(t.Low), value(t.High), value(c.Low))
		to, also := shareOf(value(t.Low), value(t.High), value(c.High))
		if !ok || !also {
			return -1
		}
		left += to - from
	}
	if done := whole - left; done > whole/100 {
		return int64(float64(s.Tally.Gone) * left / done)
	}
	return -1
}
