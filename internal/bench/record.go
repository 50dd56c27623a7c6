package bench

import (
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// window is the length of the windows that inserts are looked at by.
const window = time.Second

// Longest is the longest latency told apart.
const Longest = 10 * time.Minute

// maxErrors bounds the different messages that are kept.
const maxErrors = 20

// Errors counts messages of errors.
type Errors map[string]int64

// Add counts one.
func (e Errors) Add(text string) {
	if _, known := e[text]; known || len(e) < maxErrors {
		e[text]++
	}
}

// Micros is the latency of a call, within what a histogram takes.
func Micros(meant, end time.Time) int64 {
	return min(max(end.Sub(meant).Microseconds(), 1), Longest.Microseconds())
}

// Outcome is what became of one call's documents.
type Outcome struct {
	Done      int // stored or changed
	Unmatched int // no document matched
	Failed    int
	Errors    []string
}

// Tally adds up the calls of one kind.
type Tally struct {
	Calls                   int64
	Done, Unmatched, Failed int64                   // documents
	Latency                 *hdrhistogram.Histogram // microseconds
}

// NewTally has counted nothing yet.
func NewTally() Tally { return Tally{Latency: hdrhistogram.New(1, Longest.Microseconds(), 3)} }

// Add counts one call.
func (t *Tally) Add(micros int64, o Outcome) {
	t.Calls++
	t.Done += int64(o.Done)
	t.Unmatched += int64(o.Unmatched)
	t.Failed += int64(o.Failed)
	t.Latency.RecordValue(micros) // within range by Micros
}

// recorder is where the workers tell of their calls.
type recorder struct {
	start time.Time

	mu      sync.Mutex
	kinds   [kinds]Tally
	windows [][]int32 // microseconds of inserts, by the second that they were meant to begin in
	errors  Errors
}

func newRecorder(start time.Time) *recorder {
	r := &recorder{start: start, errors: make(Errors)}
	for k := range r.kinds {
		r.kinds[k] = NewTally()
	}
	return r
}

// add counts one call.
func (r *recorder) add(kind Kind, meant, end time.Time, o Outcome) {
	micros := Micros(meant, end)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kinds[kind].Add(micros, o)
	if kind == Insert {
		r.addWindow(int(meant.Sub(r.start)/window), int32(micros))
	}
	for _, text := range o.Errors {
		r.errors.Add(text)
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
	updates := func(f func(*Tally) int64) int64 { return f(&r.kinds[UpdateByID]) + f(&r.kinds[UpdateByIDAndTime]) }
	return Totals{
		Inserted:  r.kinds[Insert].Done,
		Updated:   updates(func(t *Tally) int64 { return t.Done }),
		Unmatched: updates(func(t *Tally) int64 { return t.Unmatched }),
		Failed:    r.kinds[Insert].Failed + updates(func(t *Tally) int64 { return t.Failed }),
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
	return Percentile(all, 99)
}

// Percentile returns the smallest value that p percent of all are at most, 0 of none. It sorts micros.
func Percentile(micros []int32, p float64) time.Duration {
	if len(micros) == 0 {
		return 0
	}
	slices.Sort(micros)
	n := int(float64(len(micros))*p/100 + 0.999999)
	return time.Duration(micros[min(max(n, 1), len(micros))-1]) * time.Microsecond
}
