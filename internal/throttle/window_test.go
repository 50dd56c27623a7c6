package throttle_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"oxbow/internal/throttle"
)

// TestQuantile compares a window's quantiles with those of a sorted list: they are no less, and no more than a step more.
func TestQuantile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		took := rapid.SliceOfN(rapid.Int64Range(0, int64(3*time.Minute)), 1, 300).Draw(t, "took")
		share := rapid.Float64Range(0, .999).Draw(t, "share")
		w, now := throttle.NewWindow(), time.Now()
		for _, n := range took {
			w.Note(now, time.Duration(n))
		}
		got, n := w.Quantile(now, 5*time.Second, share)
		slices.Sort(took)
		want := time.Duration(took[int(float64(len(took))*share)])
		if n != len(took) || got < want || got > max(want+want/30, 64) {
			t.Fatalf("of %d times %v, not %v", n, got, want)
		}
	})
}

// TestWindowForgets has times of one second and then of later ones, the window's slots many times over.
func TestWindowForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := throttle.NewWindow()
		for i := range 100 {
			for range 10 {
				w.Command("find", time.Duration(i+1)*time.Millisecond, 0)
				w.Command("getMore", time.Hour, 0) // waits for as long as it is told to
			}
			if _, n := w.Quantile(time.Now(), 5*time.Second, .99); n != 10*min(i+1, 5) {
				t.Fatalf("after %d s there are %d", i, n)
			}
			time.Sleep(time.Second)
		}
		if took, _ := w.Quantile(time.Now(), 5*time.Second, 0); took < 97*time.Millisecond || took > 100*time.Millisecond {
			t.Errorf("the shortest of the last is %v", took)
		}
		time.Sleep(5 * time.Second)
		if took, n := w.Quantile(time.Now(), 5*time.Second, .99); took != 0 || n != 0 {
			t.Errorf("%d left: %v", n, took)
		}
	})
}

// TestWindowAtOnce notes times from several goroutines while seconds pass.
func TestWindowAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := throttle.NewWindow()
		for range 8 {
			go func() {
				for range 3000 {
					w.Command("update", time.Millisecond, 0)
					time.Sleep(time.Duration(rand.IntN(2_000_000)))
				}
			}()
		}
		time.Sleep(time.Minute)
		for range 8 {
			w.Command("update", time.Millisecond, 0)
		}
		if took, n := w.Quantile(time.Now(), 5*time.Second, .5); n != 8 || took < time.Millisecond || took > 1100*time.Microsecond {
			t.Errorf("%d: %v", n, took)
		}
	})
}
