package maintain

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	_ "time/tzdata" // zones must not depend on the machine

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
)

var rewrite = flag.Bool("rewrite", false, "write the charts of testdata anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is now\n%s", file, got)
	}
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// seldom lets processes look less often, so that months take seconds.
func seldom(o *Options) { o.Poll, o.Lease = 5*time.Minute, 25*time.Minute }

// inside checks that no step ran outside of a job's windows, and no two of the job at once.
func (r *rig) inside(specs ...Spec) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, spec := range specs {
		var before *taken
		for _, s := range r.taken {
			if s.job != spec.ID {
				continue
			}
			span, in := spec.Windows.At(s.at)
			if !in || !span.End.IsZero() && s.end.After(span.End) {
				r.t.Errorf("%s: a step from %s to %s, outside its windows", s.job, s.at, s.end)
			}
			if before != nil && (before.end.IsZero() || before.end.After(s.at)) {
				r.t.Errorf("%s: a step begins at %s, and the one before ends at %s", s.job, s.at, before.end)
			}
			before = s
		}
	}
}

// TestThirtyNights draws which steps ran when: a job that is done early in the night, and one that the end of its window cuts off, over both changes of daylight time
// and a leap day.
func TestThirtyNights(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	var charts strings.Builder
	for _, from := range []time.Time{date(2026, 3, 14, 12, 0), date(2026, 10, 10, 12, 0), date(2028, 2, 14, 12, 0)} {
		bubble(t, from, func(t *testing.T, r *rig) {
			r.work, r.took = 3, 20*time.Minute
			short := Spec{ID: "short", Kind: "toy", Windows: r.windows("22:00-06:00 Europe/Berlin"), Every: EachWindow}
			long := Spec{ID: "long ", Kind: "toy", Windows: r.windows("00:30-03:40 Europe/Berlin", "sat 12:00-13:00 Europe/Berlin"), Every: EachWindow}
			days := func(n int) {
				p := r.start(seldom, short)
				time.Sleep(time.Duration(n) * 24 * time.Hour)
				p.stop()
			}
			days(30)
			nights := map[string]int{}
			for _, s := range r.taken {
				span, _ := short.Windows.At(s.at)
				nights[span.Begin.Format(time.DateOnly)]++
				if !s.whole {
					t.Errorf("a step from %s to %s was cut off", s.at, s.end)
				}
			}
			if len(nights) != 30 {
				t.Errorf("%d nights", len(nights))
			}
			for night, n := range nights {
				if n != 3 {
					t.Errorf("%s: %d steps", night, n)
				}
			}
			r.inside(short)
			fmt.Fprintln(&charts, r.chart(30*time.Minute, berlin))
			r.taken = nil
			r.until(from.AddDate(0, 0, 31))
			r.work = 1000
			p := r.start(seldom, long)
			r.until(from.AddDate(0, 0, 38))
			p.stop()
			r.inside(long)
			fmt.Fprintln(&charts, r.chart(30*time.Minute, berlin))
		})
	}
	// The night of a change of time, cut off at the end of the window.
	for _, from := range []time.Time{date(2026, 3, 27, 12, 0), date(2026, 10, 23, 12, 0)} {
		bubble(t, from, func(t *testing.T, r *rig) {
			r.work, r.took = 1000, 20*time.Minute
			spec := Spec{ID: "changed", Kind: "toy", Windows: r.windows("00:30-03:40 Europe/Berlin")}
			p := r.start(seldom, spec)
			r.until(from.AddDate(0, 0, 3))
			p.stop()
			r.inside(spec)
			fmt.Fprintln(&charts, r.chart(30*time.Minute, berlin))
		})
	}
	golden(t, "nights.txt", charts.String())
}

// TestAnyNights has three processes, which are lost, cut off, stopped and started, whose clocks jump, and operators who pause and resume, at random.
func TestAnyNights(t *testing.T) {
	for seed := range uint64(3) {
		if testing.Short() && seed > 0 {
			break // one month is enough for the race detector, under which each takes minutes
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			from := []time.Time{date(2026, 3, 20, 12, 0), date(2026, 10, 16, 12, 0), date(2028, 2, 20, 12, 0)}[seed%3]
			bubble(t, from, func(t *testing.T, r *rig) { anyNights(t, r, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func anyNights(t *testing.T, r *rig, random *rand.Rand) {
	const days = 30
	r.work, r.took = 15, 20*time.Minute
	spec := Spec{ID: "nightly", Kind: "toy", Windows: r.windows("22:00-06:00 America/New_York"), Every: EachWindow}
	change := func(o *Options) {
		o.Poll, o.Lease = 2*time.Minute, 8*time.Minute
		o.BackendTime = func(context.Context, Spec) (time.Time, error) { return r.now(), nil }
	}
	processes := make([]*process, 3)
	for i := range processes {
		processes[i] = r.start(change, spec)
	}
	until := r.now().AddDate(0, 0, days)
	for r.now().Before(until) {
		time.Sleep(time.Duration(random.IntN(100)) * time.Minute)
		i := random.IntN(len(processes))
		p := processes[i]
		switch random.IntN(12) {
		case 0:
			p.lose()
			processes[i] = r.start(change, spec)
		case 1:
			p.stop()
			time.Sleep(time.Duration(random.IntN(60)) * time.Minute)
			processes[i] = r.start(change, spec)
		case 2:
			p.cut.Store(true)
			time.Sleep(time.Duration(random.IntN(1200)) * time.Second)
			p.cut.Store(false)
		case 3:
			p.jumped.Store(int64(time.Duration(random.IntN(2000)-1000) * time.Minute))
		case 4:
			p.jumped.Store(0)
		case 5:
			p.order("nightly", Order{Pause: true})
			time.Sleep(time.Duration(random.IntN(90)) * time.Minute)
			p.order("nightly", Order{Resume: true})
		case 6: // somebody who confirms whatever a clock shows; it was put right before
			p.jumped.Store(0)
			p.order("nightly", Order{Resume: true})
		}
		for _, p := range processes {
			if random.IntN(3) == 0 {
				p.jumped.Store(0)
			}
		}
	}
	for _, p := range processes {
		p.stop()
	}
	r.inside(spec)
	// Each night's pass was begun, and no step of a pass was left out.
	nights := map[string]bool{}
	for _, s := range r.taken {
		span, _ := spec.Windows.At(s.at)
		nights[span.Begin.Format(time.DateOnly)] = true
	}
	if len(nights) != days {
		t.Errorf("steps in %d of %d nights: %v", len(nights), days, nights)
	}
	passes := map[string]map[string]bool{}
	for key := range r.effects {
		var id, pass, n string
		if _, err := fmt.Sscan(key, &id, &pass, &n); err != nil {
			t.Fatal(err)
		}
		if passes[pass] == nil {
			passes[pass] = map[string]bool{}
		}
		passes[pass][n] = true
	}
	whole := 0
	for _, steps := range passes {
		if len(steps) == r.work {
			whole++
		}
	}
	if whole < days*2/3 {
		t.Errorf("%d whole passes in %d nights: %v", whole, days, passes)
	}
	doubled := 0
	for _, n := range r.effects {
		doubled += n - 1
	}
	t.Logf("%d steps taken, %d of them again", len(r.taken), doubled)
}

// TestKilledAnywhere loses the process after each command that it sends and after each effect, and lets another go on.
func TestKilledAnywhere(t *testing.T) {
	commands := 0
	for at := 0; at == 0 || at <= commands; at++ {
		for _, done := range []bool{false, true} {
			bubble(t, noon, func(t *testing.T, r *rig) {
				n := killedAt(t, r, func(p *process, sent int, after bool) bool { return sent == at && after == done }, -1)
				if at == 0 {
					commands = n
				}
			})
		}
	}
	if commands < 8 {
		t.Errorf("%d commands make three steps", commands)
	}
	for step := range 3 {
		bubble(t, noon, func(t *testing.T, r *rig) {
			killedAt(t, r, func(*process, int, bool) bool { return false }, step)
		})
	}
}

// killedAt runs a job, loses its process when that is wanted, lets another go on, and returns how many commands the first has sent.
func killedAt(t *testing.T, r *rig, wanted func(p *process, sent int, after bool) bool, effect int) (commands int) {
	spec := Spec{ID: "one", Kind: "toy"}
	var mu sync.Mutex // of commands and what wanted looks at
	var first *process
	r.sent = func(p *process, _ *backend.Request, done bool) {
		if p != first {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if !done {
			commands++
		}
		if wanted(p, commands, done) {
			p.cut.Store(true)
		}
	}
	r.effect = func(p *process, _ string, step int) {
		if p == first && step == effect {
			p.cut.Store(true)
		}
	}
	first = r.process(nil)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		first.Once(ctx, spec, nil)
	}()
	<-ended
	s, err := r.process(nil).Once(t.Context(), spec, nil)
	mu.Lock()
	defer mu.Unlock()
	if err != nil || s.State != Done || s.Steps != 3 && s.Documents != 3 {
		t.Errorf("killed after %d commands: %+v, %v", commands, s, err)
	}
	for step := range 3 {
		if n := r.effects[fmt.Sprintf("one 2026-03-01 %d", step)]; n < 1 || n > 3 {
			t.Errorf("killed after %d commands: the effect of step %d was had %d times", commands, step, n)
		}
	}
	return commands
}

// Whoever was cut off and comes back late writes nothing of what it did under the lease that another has taken.
func TestLateWritesAreLost(t *testing.T) {
	bubble(t, noon, func(t *testing.T, r *rig) {
		r.work, r.took = 100, 10*time.Second
		p := r.start(nil, Spec{ID: "one", Kind: "toy"})
		time.Sleep(25 * time.Second)
		stored, err := p.Store().record(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		late := held{"one", stored.Lease.Token, stored.Lease.Owner}
		p.cut.Store(true)
		q := r.start(nil, Spec{ID: "one", Kind: "toy"})
		defer q.stop()
		time.Sleep(30 * time.Second)
		p.cut.Store(false)
		now, err := q.Store().record(t.Context(), "one")
		if err != nil || now.Lease.Token <= late.token || now.Lease.Owner != q.me.name {
			t.Fatalf("%+v, %v", now.Lease, err)
		}
		err = p.Store().put(t.Context(), late, driver.D{{Key: "$set", Value: driver.D{{Key: "checkpoint", Value: bson.Document{5, 0, 0, 0, 0}}}}})
		if err != errLost {
			t.Errorf("a late checkpoint: %v", err)
		}
		if _, err := p.Store().renew(t.Context(), late, p.wall(), nil); err != errLost {
			t.Errorf("a late renewal: %v", err)
		}
		time.Sleep(time.Minute)
		p.stop()
		for i, s := range r.taken {
			if i > 0 && r.taken[i-1].end.After(s.at) {
				t.Errorf("step %d begins at %s, the one before ends at %s", i, s.at, r.taken[i-1].end)
			}
		}
		h := q.history("one")
		if len(h) != 1 || !strings.HasPrefix(h[0].Reason, "cut off") || h[0].Token != late.token || h[0].Steps != 2 {
			t.Errorf("%+v", h)
		}
	})
}
