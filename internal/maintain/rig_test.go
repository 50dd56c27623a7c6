package maintain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/backend/embedded"
	"oxbow/internal/bson"
	"oxbow/internal/schedule"
)

// rig is a deployment in memory, on the virtual time of a bubble, and what happened on it.
type rig struct {
	t     *testing.T
	data  backend.Backend
	ahead time.Duration // of the true time before virtual time, which begins with the year 2000
	work  int           // steps of a pass of the toy job
	took  time.Duration // by each

	mu      sync.Mutex
	taken   []*taken
	effects map[string]int                                    // what the toys changed, and how often
	fail    func(job string, step int) error                  // nil: none fails
	effect  func(p *process, job string, step int)            // called when a step has had its effect
	sent    func(p *process, req *backend.Request, done bool) // called before and after each command of a process
}

// taken is a step that began.
type taken struct {
	job     string
	step    int
	process *process
	at      time.Time // true time
	end     time.Time // true time; zero: it runs
	whole   bool
}

// bubble runs a test on virtual time, from a moment on. The engine stays outside, on real time: what it does every few milliseconds would be done for months.
func bubble(t *testing.T, from time.Time, test func(t *testing.T, r *rig)) {
	t.Helper()
	data, err := embedded.Open(embedded.Options{Store: embedded.Store{Dir: "data", FS: vfs.NewMem(), CacheBytes: 1 << 20, MemTableBytes: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	outside := newOutside(data)
	defer func() {
		outside.stop()
		if err := data.Close(); err != nil {
			t.Error(err)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		test(t, &rig{t: t, data: outside, ahead: time.Until(from), work: 3, took: time.Second, effects: map[string]int{}})
	})
}

// outside is a way out of a bubble: commands go over channels that were made outside, so that time stands still until they are answered.
type outside struct {
	backend.Backend
	calls chan *call
	free  chan *call
}

type call struct {
	req   *backend.Request
	reply bson.Document
	err   error
	done  chan struct{}
}

func newOutside(b backend.Backend) *outside {
	const atOnce = 16
	o := &outside{b, make(chan *call, atOnce), make(chan *call, atOnce)}
	for range atOnce {
		o.free <- &call{done: make(chan struct{}, 1)}
	}
	for range 2 {
		go func() {
			for c := range o.calls {
				c.reply, c.err = b.Run(context.Background(), c.req)
				c.done <- struct{}{}
			}
		}()
	}
	return o
}

func (o *outside) Run(ctx context.Context, req *backend.Request) (bson.Document, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c := <-o.free
	c.req = req
	o.calls <- c
	<-c.done
	reply, err := c.reply, c.err
	o.free <- c
	return reply, err
}

func (o *outside) stop() { close(o.calls) }

// now is the true time.
func (r *rig) now() time.Time { return time.Now().Add(r.ahead).Round(0).UTC() }

// until lets time pass until a moment.
func (r *rig) until(at time.Time) { time.Sleep(at.Sub(r.now())) }

// process is one that runs jobs: it has a clock of its own, a way to the deployment of its own, and can be lost.
type process struct {
	*Runner
	rig    *rig
	jumped atomic.Int64 // nanoseconds that its wall clock is ahead of the true time
	cut    atomic.Bool  // nothing gets through to the deployment
	cancel context.CancelFunc
	ended  chan struct{}
}

// Run, Abilities and Close are those of the deployment, as the process reaches it.
func (p *process) Run(ctx context.Context, req *backend.Request) (bson.Document, error) {
	p.tell(req, false)
	if p.cut.Load() {
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		return nil, fmt.Errorf("%w: cut off", backend.ErrUnavailable)
	}
	reply, err := p.rig.data.Run(ctx, req)
	p.tell(req, true)
	if p.cut.Load() {
		return nil, errors.New("cut off")
	}
	return reply, err
}

func (p *process) tell(req *backend.Request, done bool) {
	p.rig.mu.Lock()
	sent := p.rig.sent
	p.rig.mu.Unlock()
	if sent != nil {
		sent(p, req, done)
	}
}

func (p *process) Abilities() backend.Abilities { return p.rig.data.Abilities() }
func (p *process) Close() error                 { return nil }

// process makes a process that does not run yet.
func (r *rig) process(change func(*Options)) *process {
	p := &process{rig: r}
	started := time.Now()
	o := Options{
		Store: NewStore(p, "jobs"),
		Kinds: map[string]Kind{"toy": func(s Spec) (Job, error) { return &toy{rig: r, process: p, spec: s}, nil }},
		Clock: func() (time.Time, time.Duration) { return p.wall(), time.Since(started) },
		Log:   slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&o)
	}
	p.Runner = New(o)
	return p
}

// start makes a process that runs jobs.
func (r *rig) start(change func(*Options), specs ...Spec) *process {
	p := r.process(change)
	p.Set(specs)
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.ended = cancel, make(chan struct{})
	go func() { defer close(p.ended); p.Runner.Run(ctx) }()
	return p
}

// stop lets a process end.
func (p *process) stop() {
	p.cancel()
	<-p.ended
}

// lose ends a process as kill -9 does: from now on nothing of it gets through.
func (p *process) lose() {
	p.cut.Store(true)
	p.stop()
}

// wall is what the process's clock shows.
func (p *process) wall() time.Time { return p.rig.now().Add(time.Duration(p.jumped.Load())) }

// toy is a job of rig.work steps. Step n of a pass has one effect, which is the same whoever has it how often.
type toy struct {
	rig     *rig
	process *process
	spec    Spec
}

func (j *toy) Step(ctx context.Context, checkpoint bson.Document, pace Pace) (Outcome, error) {
	n, pass := 0, j.rig.now().Format(time.DateOnly)
	if v, ok := bson.Get(checkpoint, "next"); ok {
		n = int(v.AsInt64())
	}
	if v, ok := bson.Get(checkpoint, "pass"); ok {
		pass = v.StringValue()
	}
	if err := pace.Wait(ctx, 1, 10); err != nil {
		return Outcome{}, err
	}
	if err := j.act(ctx, pass, n); err != nil {
		return Outcome{}, err
	}
	next, err := driver.Marshal(driver.D{{Key: "next", Value: int64(n + 1)}, {Key: "pass", Value: pass}})
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Checkpoint: next, Done: n+1 == j.rig.work, Documents: 1, Bytes: 10, Remaining: int64(j.rig.work - n - 1)}, nil
}

// act takes its time and has the effect.
func (j *toy) act(ctx context.Context, pass string, n int) error {
	r := j.rig
	s := &taken{job: j.spec.ID, step: n, process: j.process, at: r.now()}
	r.mu.Lock()
	r.taken = append(r.taken, s)
	fail, effect, took := r.fail, r.effect, r.took
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		s.end = r.now()
	}()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(took):
	}
	if fail != nil {
		if err := fail(j.spec.ID, n); err != nil {
			return err
		}
	}
	if j.process.cut.Load() {
		return errors.New("cut off")
	}
	r.mu.Lock()
	s.whole = true
	r.effects[fmt.Sprintf("%s %s %d", j.spec.ID, pass, n)]++
	r.mu.Unlock()
	if effect != nil {
		effect(j.process, j.spec.ID, n)
	}
	return nil
}

// chart draws the steps that began, a line a job and day, a column a slot of time, by the clock of a zone.
func (r *rig) chart(slot time.Duration, zone *time.Location) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	columns := int(24 * time.Hour / slot)
	lines := map[string][]byte{}
	var order []string
	for _, s := range r.taken {
		local := s.at.In(zone)
		name := local.Format("Mon 2006-01-02") + " " + s.job
		if lines[name] == nil {
			lines[name] = []byte(strings.Repeat(".", columns))
			order = append(order, name)
		}
		at := (time.Duration(local.Hour())*time.Hour + time.Duration(local.Minute())*time.Minute) / slot
		switch c := &lines[name][at]; {
		case *c == '.':
			*c = '1'
		case *c >= '9':
			*c = '+'
		default:
			*c++
		}
	}
	var b strings.Builder
	for _, name := range order {
		fmt.Fprintf(&b, "%s %s\n", name, lines[name])
	}
	return b.String()
}

func (r *rig) steps() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.taken)
}

func (r *rig) windows(texts ...string) schedule.Windows {
	ws, err := schedule.ParseAll(texts)
	if err != nil {
		r.t.Fatal(err)
	}
	return ws
}

func (p *process) status(id string) Status {
	p.rig.t.Helper()
	s, err := NewStore(p.rig.data, "jobs").Get(context.Background(), id, p.wall())
	if err != nil {
		p.rig.t.Fatal(err)
	}
	return s
}

func (p *process) order(id string, o Order) {
	p.rig.t.Helper()
	if err := NewStore(p.rig.data, "jobs").Order(context.Background(), id, o); err != nil {
		p.rig.t.Fatal(err)
	}
}

func (p *process) history(id string) []Entry {
	p.rig.t.Helper()
	h, err := NewStore(p.rig.data, "jobs").History(context.Background(), id, 0)
	if err != nil {
		p.rig.t.Fatal(err)
	}
	return h
}

var errToy = errors.New("the toy broke")

func date(year, month, day, hour, minute int) time.Time {
	return time.Date(year, time.Month(month), day, hour, minute, 0, 0, time.UTC)
}
