package maintain

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Jobs that always have something to do share the time by their priorities, and none waits for another's backlog.
func TestTurnsAreFair(t *testing.T) {
	bubble(t, noon, func(t *testing.T, r *rig) {
		r.work = 1_000_000
		p := r.start(func(o *Options) { o.AtOnce = 1 }, Spec{ID: "a", Kind: "toy"}, Spec{ID: "b", Kind: "toy"}, Spec{ID: "c", Kind: "toy", Priority: 2})
		time.Sleep(10 * time.Minute)
		p.stop()
		steps := map[string]int{}
		for _, s := range r.taken {
			steps[s.job]++
		}
		for job, want := range map[string]int{"a": 150, "b": 150, "c": 300} {
			if n := steps[job]; n < want-20 || n > want+20 {
				t.Errorf("%s: %d steps, want about %d", job, n, want)
			}
		}
	})
}

func TestClockJumps(t *testing.T) {
	bubble(t, noon, func(t *testing.T, r *rig) {
		r.work = 1_000_000
		p := r.start(nil, Spec{ID: "a", Kind: "toy"})
		defer p.stop()
		holds := func(held bool) {
			t.Helper()
			time.Sleep(10 * time.Second)
			before := r.steps()
			time.Sleep(time.Minute)
			s := p.status("a")
			if held != (r.steps() == before) || held != (s.State == Held) || held && !strings.Contains(s.Reason, "the clock jumped by 2h") {
				t.Errorf("%d steps more, %+v", r.steps()-before, s)
			}
		}
		holds(false)
		p.jumped.Store(int64(2 * time.Hour))
		holds(true)
		p.jumped.Store(0)
		holds(false)
		p.jumped.Store(int64(2 * time.Hour))
		holds(true)
		p.order("a", Order{Resume: true})
		holds(false)
	})
}

func TestStopFile(t *testing.T) {
	bubble(t, noon, func(t *testing.T, r *rig) {
		r.work = 1_000_000
		file := filepath.Join(t.TempDir(), "stop")
		p := r.start(nil, Spec{ID: "a", Kind: "toy", StopFile: file})
		defer p.stop()
		time.Sleep(10 * time.Second)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		before := r.steps()
		time.Sleep(time.Minute)
		if s := p.status("a"); r.steps() != before || before == 0 || s.State != Held || !strings.Contains(s.Reason, file) {
			t.Errorf("%d steps, then %d: %+v", before, r.steps(), s)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if r.steps() == before {
			t.Error("the stop file is gone, and nothing runs")
		}
	})
}

// A time limit counts in each window; without windows it ends the job until somebody resumes it.
func TestMaxRun(t *testing.T) {
	bubble(t, noon, func(t *testing.T, r *rig) {
		r.work, r.took = 1_000_000, time.Minute
		nightly := Spec{ID: "nightly", Kind: "toy", Windows: r.windows("22:00-06:00"), MaxRun: time.Hour}
		p := r.start(seldom, nightly, Spec{ID: "once", Kind: "toy", MaxRun: 10 * time.Minute})
		defer p.stop()
		r.until(date(2026, 3, 4, 12, 0))
		steps := map[string]int{}
		for _, s := range r.taken {
			if s.whole {
				steps[s.job]++
			}
			if s.job == "nightly" && s.at.Hour() != 22 {
				t.Errorf("a step at %s", s.at)
			}
		}
		if n := steps["nightly"]; n < 3*59 || n > 3*60 {
			t.Errorf("%d steps in three nights", n)
		}
		if n := steps["once"]; n < 9 || n > 10 {
			t.Errorf("%d steps in ten minutes", n)
		}
		if s := p.status("once"); s.State != Stopped || !strings.Contains(s.Reason, "which is its limit") {
			t.Errorf("%+v", s)
		}
		p.order("once", Order{Resume: true})
		time.Sleep(time.Hour)
		if s := p.status("once"); s.Steps < 18 || s.State != Stopped {
			t.Errorf("resumed: %+v", s)
		}
	})
}

func TestTaken(t *testing.T) {
	bubble(t, noon, func(t *testing.T, r *rig) {
		r.work = 1_000_000
		p := r.start(nil, Spec{ID: "a", Kind: "toy"})
		defer p.stop()
		time.Sleep(5 * time.Second)
		if _, err := r.process(nil).Once(context.Background(), Spec{ID: "a", Kind: "toy"}, nil); !errors.Is(err, ErrTaken) {
			t.Errorf("%v", err)
		}
	})
}

// The history is bounded, and each job has its own.
func TestHistoryIsBounded(t *testing.T) {
	bubble(t, noon, func(t *testing.T, r *rig) {
		r.work, r.took = 1, time.Second
		p := r.start(nil, Spec{ID: "a", Kind: "toy", Every: 5 * time.Second}, Spec{ID: "b", Kind: "toy"})
		time.Sleep(20 * time.Minute)
		p.stop()
		a, b := p.history("a"), p.history("b")
		if len(a) != keptEntries || len(b) != 1 {
			t.Fatalf("%d and %d entries", len(a), len(b))
		}
		for i, e := range a {
			if i > 0 && e.N != a[i-1].N+1 {
				t.Errorf("entry %d follows entry %d", e.N, a[i-1].N)
			}
		}
		if n := len(r.effects); r.steps() < 240 || n != 2 {
			t.Errorf("%d steps, %d effects", r.steps(), n)
		}
	})
}
