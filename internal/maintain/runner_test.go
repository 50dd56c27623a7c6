package maintain

import (
	"context"
	"testing"
	"time"
)

func TestOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		p := r.process(date(2026, 3, 1, 12, 0), nil)
		var seen []Status
		s, err := p.Once(t.Context(), Spec{ID: "one", Kind: "toy", Namespace: "a.b"}, func(s Status) { seen = append(seen, s) })
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
		if s, err = p.Once(t.Context(), Spec{ID: "one", Kind: "toy", Namespace: "a.b"}, nil); err != nil || s.Documents != 3 || r.steps() != 6 {
			t.Errorf("again: %+v, %v after %d steps", s, err, r.steps())
		}
	})
}

// Stopped by whoever runs it, it ends after its step, and goes on where it was.
func TestOnceGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		p := r.process(date(2026, 3, 1, 12, 0), nil)
		spec := Spec{ID: "one", Kind: "toy"}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		s, err := p.Once(ctx, spec, nil)
		if err != nil || s.State != Waiting || s.Steps != 2 || s.Owner != "" {
			t.Fatalf("%+v, %v", s, err)
		}
		if s, err = r.process(p.wall(), nil).Once(t.Context(), spec, nil); err != nil || s.State != Done || s.Steps != 3 || r.steps() != 3 {
			t.Errorf("%+v, %v after %d steps", s, err, r.steps())
		}
	})
}
