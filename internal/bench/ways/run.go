package ways

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bench"
)

// Way is one way to get rid of old documents.
type Way struct {
	Name  string
	About string // how it works, in a line
	Split bool   // it needs data that is split by time
	// Run takes away all that has to go and returns when it has, or when ctx ends.
	Run func(ctx context.Context, t *Target) error
}

// Target is what a way works on.
type Target struct {
	*Place
	Data    *Data
	Arrival int           // documents that come in a second
	IdleP99 time.Duration // the foreground's, without the way
	// Quantile is the latency that a share of the foreground's calls of the last seconds stayed within, and how many there were.
	Quantile func(now time.Time, last time.Duration, share float64) (time.Duration, int)
}

// Slice is how much of the data's time holds as many documents as come in a minute.
func (t *Target) Slice() time.Duration {
	old := t.Data.Cutoff.Sub(t.Data.Start())
	n := max(float64(t.Data.Old())/max(float64(60*t.Arrival), 1), 1)
	return max(time.Duration(float64(old)/n), time.Second)
}

// Refusal is the error of a way that can't be run there at all.
type Refusal struct{ Reason string }

func (r *Refusal) Error() string { return r.Reason }

// Host gives each way data of its own.
type Host interface {
	// Open returns a place with the data that fill writes, and nothing else; closed when its run is over.
	Open(ctx context.Context, split bool, fill func(ctx context.Context, p *Place) error) (*Place, error)
	Close(ctx context.Context, p *Place) error
}

// Progress is where a comparison stands.
type Progress struct {
	Way   string
	Phase string // fill, idle, run, after, check
	Spent time.Duration
	// Done of Total documents, in fill and run; else 0.
	Done, Total int64
	P99         time.Duration
}

// Compare runs one way after the other. When ctx ends, the way that runs is stopped, and what has been measured is returned.
func Compare(ctx context.Context, o Options, h Host, all []Way, tell func(Progress)) (*Result, error) {
	o = o.withDefaults()
	if o.End.IsZero() {
		o.End = time.Now()
	}
	d := NewData(o, o.End)
	r := &Result{Started: time.Now(), Documents: d.Documents, Old: d.Old(), Size: d.Size, Inserts: o.Inserts, Updates: o.Updates}
	var errs []error
	for i := range all {
		c := &contest{options: o, data: d, host: h, way: &all[i], tell: tell, result: r}
		run, err := c.run(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", all[i].Name, err))
		}
		if run == nil && err != nil {
			break // without data the others can't be run either
		}
		if run != nil {
			r.Runs = append(r.Runs, *run)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return r, errors.Join(errs...)
}

// contest is one way's run.
type contest struct {
	options Options
	data    *Data
	host    Host
	way     *Way
	tell    func(Progress)
	result  *Result

	place      *Place
	foreground *foreground
	watch      *watch
}

// run returns no Run where there was nothing to measure.
func (c *contest) run(ctx context.Context) (run *Run, err error) {
	if c.place, err = c.host.Open(ctx, c.way.Split, c.fill); err != nil {
		if ctx.Err() != nil {
			return nil, nil // stopped by who runs it, while it filled
		}
		return nil, err
	}
	// Also what was interrupted is put away.
	defer func() { err = errors.Join(err, c.host.Close(context.WithoutCancel(ctx), c.place)) }()
	r := &Run{Way: c.way.Name, About: c.way.About, Old: c.data.Old()}
	if err := c.prepare(ctx, r); err != nil {
		return nil, err
	}
	c.foreground = startForeground(ctx, c.options, c.data, c.place)
	c.watch = startWatch(c)
	err = c.phases(ctx, r)
	c.foreground.end()
	c.watch.end()
	if err == nil && r.Refused == "" {
		// Counting is not interrupted: without it a run says nothing.
		err = c.check(context.WithoutCancel(ctx), r)
	}
	if err != nil {
		r.Failure = err.Error()
	}
	return r, err
}

func (c *contest) fill(ctx context.Context, p *Place) error {
	start, last := time.Now(), time.Time{}
	return c.data.Fill(ctx, p, c.options.FillWorkers, func(done int64) {
		if now := time.Now(); done == c.data.Documents || now.Sub(last) > time.Second { // a line too many harms nobody
			last = now
			c.tell(Progress{Way: c.way.Name, Phase: "fill", Spent: now.Sub(start), Done: done, Total: c.data.Documents})
		}
	})
}

// prepare asks what the foreground will meet.
func (c *contest) prepare(ctx context.Context, r *Run) error {
	about, err := bench.Describe(ctx, c.place.Client)
	if err != nil {
		return err
	}
	c.result.Server = about.Version
	now := time.Now()
	for _, coll := range c.place.collections(now, now.Add(24*time.Hour)) { // midnight may come
		if err := makeIndexes(ctx, coll); err != nil {
			return err
		}
	}
	data, disk, err := c.place.size(ctx, c.data)
	r.Fit = fit(c.place.Memory, data, disk)
	return err
}

// phases lets the foreground warm up, looks at it without the way, with it, and after it.
func (c *contest) phases(ctx context.Context, r *Run) error {
	c.pass(ctx, "idle", c.options.WarmUp+c.options.Idle)
	begin := time.Now()
	r.Idle = c.foreground.phase(begin.Add(-c.options.Idle), begin)
	before := c.watch.now()
	c.watch.begin(begin)
	if err := c.runWay(ctx, r, time.Duration(r.Idle.P99)*time.Microsecond); err != nil || r.Refused != "" {
		return err
	}
	end := time.Now()
	r.Took = end.Sub(begin).Seconds()
	after := c.watch.now()
	r.Gone, r.Came = min(after.gone, r.Old), after.inserted-before.inserted
	r.DiskBefore = before.disk
	if before.oplog != nil && after.oplog != nil {
		bytes := *after.oplog - *before.oplog
		r.Oplog = &bytes
	}
	c.pass(ctx, "after", c.options.After)
	r.DiskAfter = c.watch.now().disk
	until := end
	if least := begin.Add(c.options.After); until.Before(least) {
		until = least
	}
	c.foreground.end()
	c.sumUp(r, begin, until)
	return nil
}

// pass lets time pass.
func (c *contest) pass(ctx context.Context, phase string, length time.Duration) {
	c.watch.enter(phase)
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// runWay runs the way until its end, its limit, or the end of ctx.
func (c *contest) runWay(ctx context.Context, r *Run, idle time.Duration) error {
	c.watch.enter("run")
	limited, cancel := context.WithTimeout(ctx, c.options.Limit)
	defer cancel()
	err := c.way.Run(limited, &Target{Place: c.place, Data: c.data, Arrival: c.options.Inserts, IdleP99: idle, Quantile: c.foreground.quantile})
	var refused *Refusal
	switch {
	case errors.As(err, &refused):
		r.Refused = refused.Reason
	case ctx.Err() != nil:
		r.Stopped = "interrupted"
	case limited.Err() != nil:
		r.Stopped = fmt.Sprintf("its limit of %s", c.options.Limit)
	case err != nil:
		return err
	}
	return nil
}

// sumUp reads from the foreground what it felt.
func (c *contest) sumUp(r *Run, begin, until time.Time) {
	r.During = c.foreground.phase(begin, until)
	asked := float64(c.options.Inserts + c.options.Updates)
	for _, p := range []*Phase{&r.Idle, &r.During} {
		if asked > 0 {
			p.Held = float64(p.Inserted+p.Updated) / (asked * p.Seconds)
		}
	}
	sum := c.foreground.sum()
	r.Unmatched, r.Failed, r.Errors = sum.unmatched, sum.failed, c.foreground.errors
	r.Samples = c.watch.samples(c.foreground)
	for i := range r.Samples {
		if lag := r.Samples[i].Lag; lag != nil && (r.Lag == nil || *lag > *r.Lag) {
			r.Lag = lag
		}
	}
}

// check counts what is there against what has to be.
func (c *contest) check(ctx context.Context, r *Run) error {
	c.tell(Progress{Way: c.way.Name, Phase: "check"})
	old, err := c.place.count(ctx, c.data, bson.D{{Key: TimeField, Value: bson.D{{Key: "$lt", Value: c.data.Cutoff}}}})
	if err != nil {
		return err
	}
	stayed, err := c.place.count(ctx, c.data, bson.D{{Key: TimeField, Value: bson.D{{Key: "$gte", Value: c.data.Cutoff}}}})
	if err != nil {
		return err
	}
	r.Gone = c.data.Old() - old
	if r.Finished() {
		r.Left = old
	}
	r.Missing = c.data.Documents - c.data.Old() + c.foreground.sum().inserted - stayed
	return nil
}
