package maintain

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oxbow/internal/backend"
)

var noon = date(2026, 3, 1, 12, 0)

func TestOnce(t *testing.T) {
	bubble(t, noon, func(t *testing.T, r *rig) {
		p := r.process(nil)
		var seen []Status
		spec := Spec{ID: "one", Kind: "toy", Namespace: "a.b"}
		s, err := p.Once(t.Context(), spec, func(s Status) { seen = append(seen, s) })
		if err != nil || s.State != Done || s.Documents != 3 || s.Steps != 3 || s.Bytes != 30 || s.Remaining != 0 {
			t.Fatalf("%+v, %v", s, err)
		}
		if len(seen) < 2 || seen[1].State != Running || seen[1].Owner == "" {
			t.Errorf("watched: %+v", seen)
		}
		if h := p.history("one"); len(h) != 1 || h[0].State != Done || h[0].Documents != 3 {
			t.Errorf("history: %+v", h)
		}
		// Run again it begins anew.
		if s, err = p.Once(t.Context(), spec, nil); err != nil || s.Documents != 3 || r.steps() != 6 {
			t.Errorf("again: %+v, %v after %d steps", s, err, r.steps())
		}
	})
}

// Stopped by whoever runs it, it ends after its step, and goes on where it was; with other parameters it begins anew.
func TestOnceGoesOn(t *testing.T) {
	bubble(t, noon, func(t *testing.T, r *rig) {
		spec := Spec{ID: "one", Kind: "toy"}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		s, err := r.process(nil).Once(ctx, spec, nil)
		if err != nil || s.State != Waiting || s.Steps != 2 || s.Owner != "" {
			t.Fatalf("%+v, %v", s, err)
		}
		if s, err = r.process(nil).Once(t.Context(), spec, nil); err != nil || s.State != Done || s.Steps != 3 || r.steps() != 3 {
			t.Errorf("%+v, %v after %d steps", s, err, r.steps())
		}
		ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if s, err = r.process(nil).Once(ctx, spec, nil); err != nil || s.Steps != 1 {
			t.Errorf("%+v, %v", s, err)
		}
		spec.Namespace = "c.d"
		spec.StopFile = filepath.Join(t.TempDir(), "stop")
		if err := os.WriteFile(spec.StopFile, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		held, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if s, err = r.process(nil).Once(held, spec, nil); err != nil || s.State != Held || s.Steps != 0 || s.Documents != 0 || s.Remaining != -1 {
			t.Errorf("another one, not begun yet, is shown with what the one before has done: %+v, %v", s, err)
		}
		spec.StopFile = ""
		if s, err = r.process(nil).Once(t.Context(), spec, nil); err != nil || s.Steps != 3 || r.steps() != 7 {
			t.Errorf("%+v, %v after %d steps", s, err, r.steps())
		}
	})
}

// Whoever runs a job sits out that the deployment is away for a while, and is told where it stays away.
func TestOnceSitsOutAFailure(t *testing.T) {
	bubble(t, noon, func(t *testing.T, r *rig) {
		r.work = 60
		p := r.process(nil)
		time.AfterFunc(10*time.Second, func() { p.cut.Store(true) })
		time.AfterFunc(2*time.Minute, func() { p.cut.Store(false) })
		s, err := p.Once(t.Context(), Spec{ID: "one", Kind: "toy"}, nil)
		if err != nil || s.State != Done || s.Documents != 60 {
			t.Errorf("%+v, %v after %d steps", s, err, r.steps())
		}
		time.AfterFunc(10*time.Second, func() { p.cut.Store(true) })
		if _, err := p.Once(t.Context(), Spec{ID: "two", Kind: "toy"}, nil); !errors.Is(err, backend.ErrUnavailable) {
			t.Errorf("never there again: %v", err)
		}
	})
}

// A step that does not end when its runner does is cut off after the grace.
func TestGrace(t *testing.T) {
	bubble(t, noon, func(t *testing.T, r *rig) {
		r.took = time.Hour
		var killed []string
		p := r.process(func(o *Options) {
			o.Kill = func(_ context.Context, tag string) error { killed = append(killed, tag); return nil }
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		s, err := p.Once(ctx, Spec{ID: "one", Kind: "toy"}, nil)
		if took := time.Since(begun); err != nil || s.Steps != 0 || s.State != Waiting || took < 90*time.Second || took > 92*time.Second {
			t.Errorf("%+v, %v after %s", s, err, took)
		}
		if len(killed) != 1 || killed[0] != "oxbow:job:one" {
			t.Errorf("killed: %q", killed)
		}
	})
}

func TestRetry(t *testing.T) {
	bubble(t, noon, func(t *testing.T, r *rig) {
		broken := 4
		r.fail = func(_ string, step int) error {
			if step == 1 && broken > 0 {
				broken--
				return errToy
			}
			return nil
		}
		var reasons []string
		begun := time.Now()
		s, err := r.process(nil).Once(t.Context(), Spec{ID: "one", Kind: "toy"}, func(s Status) {
			if s.Reason != "" {
				reasons = append(reasons, s.Reason)
			}
		})
		// Three steps, four that failed, and 1 + 2 + 4 + 8 seconds between.
		if took := time.Since(begun); err != nil || s.State != Done || s.Steps != 3 || took < 22*time.Second || took > 23*time.Second {
			t.Errorf("%+v, %v after %s", s, err, took)
		}
		if all := strings.Join(reasons, "\n"); !strings.Contains(all, "it is tried again after 8s: the toy broke") {
			t.Errorf("reasons: %s", all)
		}
		broken = 100
		s, err = r.process(nil).Once(t.Context(), Spec{ID: "few", Kind: "toy", Retries: 3}, nil)
		if err != nil || s.State != Failed || s.Reason != "the toy broke" || s.Steps != 1 || broken != 97 {
			t.Errorf("%+v, %v, broken %d", s, err, broken)
		}
		r.fail = func(string, int) error { return Permanent(errToy) }
		s, err = r.process(nil).Once(t.Context(), Spec{ID: "never", Kind: "toy"}, nil)
		if err != nil || s.State != Failed || s.Reason != "the toy broke" || s.Steps != 0 {
			t.Errorf("%+v, %v", s, err)
		}
		if s, err = r.process(nil).Once(t.Context(), Spec{ID: "none", Kind: "other"}, nil); err != nil || s.State != Failed || !strings.Contains(s.Reason, `no kind of jobs called "other"`) {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

func TestBackOff(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 9: 256 * time.Second, 10: 5 * time.Minute, 1000: 5 * time.Minute} {
		if got := backOff(failures); got != want {
			t.Errorf("after %d failures: %s", failures, got)
		}
	}
}

// A failed job stays so until somebody resumes it.
func TestFailedIsResumed(t *testing.T) {
	bubble(t, noon, func(t *testing.T, r *rig) {
		r.fail = func(string, int) error { return Permanent(errToy) }
		p := r.start(nil, Spec{ID: "one", Kind: "toy"})
		defer p.stop()
		time.Sleep(time.Hour)
		if s := p.status("one"); s.State != Failed || r.steps() != 1 {
			t.Errorf("%+v after %d steps", s, r.steps())
		}
		r.mu.Lock()
		r.fail = nil
		r.mu.Unlock()
		p.order("one", Order{Resume: true})
		time.Sleep(10 * time.Second)
		if s := p.status("one"); s.State != Done || s.Steps != 3 {
			t.Errorf("%+v", s)
		}
	})
}

func TestOrders(t *testing.T) {
	bubble(t, noon, func(t *testing.T, r *rig) {
		r.work, r.took = 1000, 3*time.Second
		p := r.start(nil, Spec{ID: "one", Kind: "toy"})
		defer p.stop()
		quiet := func(state State, reason string) {
			t.Helper()
			time.Sleep(5 * time.Second) // a look, and the rest of a step
			before := r.steps()
			time.Sleep(time.Minute)
			if s := p.status("one"); r.steps() != before || s.State != state || s.Reason != reason || s.Owner != "" {
				t.Errorf("%d steps more, %+v", r.steps()-before, s)
			}
		}
		time.Sleep(10 * time.Second)
		p.order("one", Order{Pause: true})
		quiet(Paused, "paused by an order")
		p.order("one", Order{Resume: true})
		time.Sleep(1500 * time.Millisecond)
		if s := p.status("one"); s.State != Running {
			t.Errorf("resumed: %+v", s)
		}
		p.order("one", Order{Stop: true})
		quiet(Stopped, "stopped by an order")
		whole := 0
		for _, s := range r.taken {
			if s.whole {
				whole++
			}
		}
		if whole != len(r.taken) || p.status("one").Steps != int64(whole) {
			t.Errorf("%d of %d steps are whole: %+v", whole, len(r.taken), p.status("one"))
		}
		p.order("one", Order{Resume: true})
		time.Sleep(2 * time.Second)
		r.mu.Lock()
		r.took = time.Hour
		r.mu.Unlock()
		time.Sleep(10 * time.Second)
		p.order("one", Order{Stop: true, Now: true})
		quiet(Stopped, "stopped by an order")
		if last := r.taken[len(r.taken)-1]; last.whole || last.end.Sub(last.at) > 13*time.Second {
			t.Errorf("the last step took %s", last.end.Sub(last.at))
		}
		if err := p.Store().Order(t.Context(), "two", Order{Pause: true}); !errors.Is(err, ErrNoJob) {
			t.Errorf("an order to nobody: %v", err)
		}
	})
}
