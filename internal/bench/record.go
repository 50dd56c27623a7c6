package bench

import (
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// window is the length of the windows that inserts are looked at by.
const window = time.Second

// longest is the longest latency told apart.
const longest = 10 * time.Minute

// maxErrors bounds the different messages that are kept.
const maxErrors = 20

// outcome is what became of one call's documents.
type outcome struct {
	done      int // stored or changed
	unmatched int // no document matched
	failed    int
	errors    []string
}

// tally adds up the calls of one kind.
type tally struct {
	calls                   int64
	done, unmatched, failed int64
	latency                 *hdrhistogram.Histogram // microseconds
}

// recorder is where the workers tell of their calls.
type recorder struct {
	start time.Time

	mu      sync.Mutex
	kinds   [kinds]tally
	windows [][]int32 // microseconds of inserts, by the second that they were meant to begin in
	errors  map[string]int64
}

func newRecorder(start time.Time) *recorder {
	r := &recorder{start: start, errors: make(map[string]int64)}
	for k := range r.kinds {
		r.kinds[k].latency = hdrhistogram.New(1, longest.Microseconds(), 3)
	}
	return r
}

// add counts one call.
func (r *recorder) add(kind Kind, meant, end time.Time, o outcome) {
	micros := min(max(end.Sub(meant).Microseconds(), 1), longest.Microseconds())
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &r.kinds[kind]
	t.calls++
	t.done += int64(o.done)
	t.unmatched += int64(o.unmatched)
	t.failed += int64(o.failed)
	t.latency.RecordValue(micros) // within range by the line above
	if kind == Insert {
		r.addWindow(int(meant.Sub(r.start)/window), int32(micros))
	}
	for _, text := range o.errors {
		if _, known := r.errors[text]; known || len(r.errors) < maxErrors {
			r.errors[text]++
		}
	}
}

func (r *recorder) addWindow(i int, micros int32) {
	for len(r.windows) <= i {
		r.windows = append(r.windows, nil)
	}
	r.windows[i] = append(r.windows[i], micros)
}

// totals are the documents so far.
func (r *recorder) totals() Totals {
	r.mu.Lock()
	defer r.mu.Unlock()
	updates := func(f func(*tally) int64) int64 { return f(&r.kinds[UpdateByID]) + f(&r.kinds[UpdateByIDAndTime]) }
	return Totals{
		Inserted:  r.kinds[Insert].done,
		Updated:   updates(func(t *tally) int64 { return t.done }),
		Unmatched: updates(func(t *tally) int64 { return t.unmatched }),
		Failed:    r.kinds[Insert].failed + updates(func(t *tally) int64 { return t.failed }),
	}
}

// insertP99 is the 99th percentile of inserts that were meant to begin in the windows from one on, 0 if there are none.
func (r *recorder) insertP99(from int) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []int32
	for _, w := range r.windows[min(max(from, 0), len(r.windows)):] {
		all = append(all, w...)
	}
	return percentile(all, 99)
}

// percentile returns the smallest value that p percent of all are at most, 0 of none. It sorts micros.
func percentile(micros []int32, p float64) time.Duration {
	if len(micros) == 0 {
		return 0
	}
	slices.Sort(micros)
	n := int(float64(len(micros))*p/100 + 0.999999)
	return time.Duration(micros[min(max(n, 1), len(micros))-1]) * time.Microsecond
}
