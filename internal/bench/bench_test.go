package bench

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"
)

func TestLinesHaveTheSizeAskedFor(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	w := newWriter(Options{Late: time.Minute}.withDefaults(), 7)
	docs, made := w.batch(500, now)
	late := 0
	for i, doc := range docs {
		if len(doc) != 200 {
			t.Fatalf("a line of %d bytes: %s", len(doc), doc)
		}
		if err := doc.Validate(); err != nil {
			t.Fatal(err)
		}
		if doc.Lookup("_id").ObjectID() != made[i].id || doc.Lookup("time").Int64() != made[i].time {
			t.Fatalf("%s is not what is remembered of it: %v", doc, made[i])
		}
		if at := made[i].time; at > now.Unix() || at < now.Unix()-60 {
			t.Fatalf("time %d of a line made at %d", at, now.Unix())
		}
		if made[i].time < now.Unix() {
			late++
		}
	}
	if late < 20 || late > 100 {
		t.Errorf("%d of 500 lines are late, want about a tenth", late)
	}
	for _, size := range []int{1, 90, 5000} {
		doc := newWriter(Options{Size: size, TimeField: "t"}.withDefaults(), 1).line(made[0])
		if doc.Validate() != nil || size > 120 && len(doc) != size {
			t.Errorf("size %d gives %d bytes: %s", size, len(doc), doc)
		}
	}
}

func TestFiltersAndChanges(t *testing.T) {
	w := newWriter(Options{}.withDefaults(), 1)
	of := written{bson.NewObjectID(), 1_700_000_000}
	if keys, _ := w.filter(of, UpdateByID).Elements(); len(keys) != 1 || keys[0].Key() != "_id" {
		t.Errorf("by _id: %s", w.filter(of, UpdateByID))
	}
	if f := w.filter(of, UpdateByIDAndTime); f.Lookup("_id").ObjectID() != of.id || f.Lookup("time").Int64() != of.time {
		t.Errorf("by _id and time: %s", f)
	}
	if state := w.change().Lookup("$set", "state").Int32(); state < 1 || state > 3 {
		t.Errorf("change: %s", w.change())
	}
}

// TestRecent checks that what is picked is different, and among the documents added last.
func TestRecent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, n := rapid.IntRange(1, 20).Draw(t, "size"), rapid.IntRange(0, 50).Draw(t, "added")
		r := NewRecent[written](size)
		for i := range n {
			r.Add([]written{{time: int64(i)}})
		}
		asked := rapid.IntRange(1, 30).Draw(t, "asked")
		picked := r.Pick(asked, newWriter(Options{}, uint64(n)).random)
		if want := min(asked, n, size); len(picked) != want {
			t.Fatalf("%d picked, want %d", len(picked), want)
		}
		seen := make(map[int64]bool)
		for _, p := range picked {
			if seen[p.time] || p.time < int64(n-size) || p.time >= int64(n) {
				t.Fatalf("picked %v of the last %d of %d", picked, size, n)
			}
			seen[p.time] = true
		}
	})
}

func TestRecentFollowsTheRate(t *testing.T) {
	for _, test := range []struct {
		of   Options
		want int
	}{{Options{Inserts: 400_000}, 200_000}, {Options{Inserts: 600, Recent: time.Minute}, 600}, {Options{Inserts: 60, Batch: 50}, 50}, {Options{}, 250}} {
		if got := test.of.withDefaults().recent(); got != test.want {
			t.Errorf("%+v: %d documents, want %d", test.of, got, test.want)
		}
	}
}

// TestPacerForgetsNothing lets one call stall and checks that the calls after it are still meant to begin when they were.
func TestPacerForgetsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := NewPacer(start, 600, 1, time.Second) // a call each 100 ms
		var begun []time.Duration
		for n, meant, ok := p.Next(t.Context()); ok; n, meant, ok = p.Next(t.Context()) {
			if want := start.Add(time.Duration(n) * 100 * time.Millisecond); !meant.Equal(want) {
				t.Errorf("call %d is meant for %v, want %v", n, meant.Sub(start), want.Sub(start))
			}
			begun = append(begun, time.Since(start))
			if n == 1 {
				time.Sleep(350 * time.Millisecond)
			}
		}
		want := []time.Duration{0, 100, 450, 450, 450, 500, 600, 700, 800, 900}
		if len(begun) != len(want) {
			t.Fatalf("%d calls in a second, want %d: %v", len(begun), len(want), begun)
		}
		for i := range want {
			if begun[i] != want[i]*time.Millisecond {
				t.Errorf("call %d began after %v, want %v", i, begun[i], want[i]*time.Millisecond)
			}
		}
		for after, due := range map[time.Duration]int64{0: 0, 1: 1, 100 * time.Millisecond: 1, 101 * time.Millisecond: 2, time.Second: 10, time.Hour: 10} {
			if got := p.Due(start.Add(after)); got != due {
				t.Errorf("%d calls due after %v, want %d", got, after, due)
			}
		}
	})
}

func TestPacerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := NewPacer(time.Now(), 1, 1, 0)
		p.Next(ctx)
		time.AfterFunc(time.Second, cancel)
		if _, _, ok := p.Next(ctx); ok {
			t.Error("a call after the end of the context")
		}
	})
}

func TestPercentile(t *testing.T) {
	hundred := make([]int32, 100)
	for i := range hundred {
		hundred[i] = int32(100 - i)
	}
	for _, test := range []struct {
		of   []int32
		p    float64
		want time.Duration
	}{{nil, 99, 0}, {[]int32{7}, 99, 7}, {[]int32{7}, 50, 7}, {[]int32{3, 1, 2}, 50, 2}, {hundred, 99, 99}, {hundred, 100, 100}, {hundred, 90, 90}, {hundred[:10], 90, 99}} {
		if got := Percentile(append([]int32(nil), test.of...), test.p); got != test.want*time.Microsecond {
			t.Errorf("percentile %v of %d values = %v, want %d µs", test.p, len(test.of), got, test.want)
		}
	}
}

// TestWindows gives each second a latency of its own and checks which sort it is counted with.
func TestWindows(t *testing.T) {
	start := time.UnixMilli(1_700_000_000_000)
	b := &Bench{recorder: newRecorder(start), upkeep: newUpkeep(nil, 0, start)}
	for second := range 10 {
		meant := start.Add(time.Duration(second) * time.Second)
		b.recorder.add(Insert, meant, meant.Add(time.Duration(second+1)*time.Millisecond), Outcome{Done: 1})
	}
	at := func(d time.Duration, action string, took time.Duration, failed string) Event {
		return Event{At: start.Add(d), Action: action, Micros: took.Microseconds(), Error: failed}
	}
	got := b.windows([]Event{
		at(2100*time.Millisecond, "dropped", 300*time.Millisecond, ""), // reaches back into second 1
		at(2200*time.Millisecond, "made", time.Millisecond, ""),        // a drop counts more
		at(5500*time.Millisecond, "made", time.Millisecond, ""),
		at(7500*time.Millisecond, "dropped", time.Millisecond, "the disk is full"),
		at(8500*time.Millisecond, "hidden", time.Millisecond, ""),
	})
	want := WindowResult{
		Dropped: WindowGroup{Windows: 2, P99: 3000, P90: 3000, Worst: 3000},
		Made:    WindowGroup{Windows: 1, P99: 6000, P90: 6000, Worst: 6000},
		Others:  WindowGroup{Windows: 7, P99: 10000, P90: 10000, Worst: 10000},
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestFailures checks that a result tells what went wrong, and how often.
func TestFailures(t *testing.T) {
	r := newRecorder(time.Now())
	now := time.Now()
	r.add(Insert, now, now, Outcome{Done: 8, Failed: 2, Errors: []string{"duplicate", "duplicate"}})
	r.add(UpdateByID, now, now, Outcome{Done: 3, Unmatched: 1})
	r.add(UpdateByIDAndTime, now, now, Outcome{Failed: 4, Errors: []string{"no connection"}})
	if got, want := r.totals(), (Totals{Inserted: 8, Updated: 3, Unmatched: 1, Failed: 6}); got != want {
		t.Errorf("totals %+v, want %+v", got, want)
	}
	var text strings.Builder
	if err := (&Result{Errors: r.errors}).Print(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"error, 2 times: duplicate", "error, 1 times: no connection", "no gateway"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, text.String())
		}
	}
}
