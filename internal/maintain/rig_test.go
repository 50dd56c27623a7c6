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
	t    *testing.T
	data backend.Backend
	work int // steps of a pass of the toy job
	took time.Duration

	mu    sync.Mutex
	began []taken // steps that began, of all jobs
	fail  func(job string, step int) error
}

// taken is a step that began.
type taken struct {
	job  string
	step int
	at   time.Time
}

// bubble runs a test on virtual time, from a moment on. Virtual time begins with the year 2000: the wall clock of processes is ahead of it.
func bubble(t *testing.T, test func(t *testing.T, r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		data, err := embedded.Open(embedded.Options{Store: embedded.Store{Dir: "data", FS: vfs.NewMem(), CacheBytes: 1 << 20, MemTableBytes: 1 << 20}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := data.Close(); err != nil {
				t.Error(err)
			}
		}()
		test(t, &rig{t: t, data: data, work: 3, took: time.Second})
	})
}

// process is one that runs jobs: it has a clock of its own, a way to the deployment of its own, and can be lost.
type process struct {
	*Runner
	rig    *rig
	ahead  atomic.Int64 // nanoseconds that its wall clock is ahead of virtual time
	cut    atomic.Bool  // nothing gets through to the deployment
	cancel context.CancelFunc
	ended  chan struct{}
}

// Run, Abilities and Close are those of the deployment, as the process reaches it.
func (p *process) Run(ctx context.Context, req *backend.Request) (bson.Document, error) {
	if p.cut.Load() {
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		return nil, fmt.Errorf("%w: cut off", backend.ErrUnavailable)
	}
	return p.rig.data.Run(ctx, req)
}

func (p *process) Abilities() backend.Abilities { return p.rig.data.Abilities() }
func (p *process) Close() error                 { return nil }

// process makes a process that does not run yet. wall is what its clock shows now.
func (r *rig) process(wall time.Time, change func(*Options)) *process {
	p := &process{rig: r}
	p.ahead.Store(int64(time.Until(wall)))
	started := time.Now()
	o := Options{
		Store: NewStore(p, "jobs"),
		Kinds: map[string]Kind{"toy": func(s Spec) (Job, error) { return &toy{rig: r, process: p, spec: s}, nil }},
		Clock: func() (time.Time, time.Duration) {
			return time.Now().Add(time.Duration(p.ahead.Load())).Round(0).UTC(), time.Since(started)
		},
		Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&o)
	}
	p.Runner = New(o)
	return p
}

// start makes a process that runs jobs.
func (r *rig) start(wall time.Time, change func(*Options), specs ...Spec) *process {
	p := r.process(wall, change)
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
func (p *process) wall() time.Time { at, _ := p.opts.Clock(); return at }

// until lets time pass until the process's clock shows a moment.
func (p *process) until(at time.Time) { time.Sleep(at.Sub(p.wall())) }

// toy is a job of rig.work steps. Step n takes a document out of "do" and counts it in "did", each with the number of the pass, so that a step done again
// changes nothing more.
type toy struct {
	rig     *rig
	process *process
	spec    Spec
}

func (j *toy) Step(ctx context.Context, checkpoint bson.Document, pace Pace) (Outcome, error) {
	n := 0
	if v, ok := bson.Get(checkpoint, "next"); ok {
		n = int(v.AsInt64())
	}
	if err := pace.Wait(ctx, 1, 10); err != nil {
		return Outcome{}, err
	}
	j.rig.mu.Lock()
	j.rig.began = append(j.rig.began, taken{j.spec.ID, n, j.process.wall()})
	fail := j.rig.fail
	j.rig.mu.Unlock()
	select {
	case <-ctx.Done():
		return Outcome{}, context.Cause(ctx)
	case <-time.After(j.rig.took):
	}
	if fail != nil {
		if err := fail(j.spec.ID, n); err != nil {
			return Outcome{}, err
		}
	}
	next, err := driver.Marshal(driver.D{{Key: "next", Value: int64(n + 1)}})
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Checkpoint: next, Done: n+1 == j.rig.work, Documents: 1, Bytes: 10, Remaining: int64(j.rig.work - n - 1)}, nil
}

// chart draws the steps that began, a line a job and day, a column a slot of time, by the clock of a zone.
func (r *rig) chart(slot time.Duration, zone *time.Location) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	columns := int(24 * time.Hour / slot)
	lines := map[string][]byte{}
	var order []string
	for _, s := range r.began {
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
	return len(r.began)
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
