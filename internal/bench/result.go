package bench

import (
	"context"
	"errors"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Result is what a load came to.
type Result struct {
	Namespace string    `json:"namespace"`
	Server    string    `json:"server"` // MongoDB's version that it answers as
	Started   time.Time `json:"started"`
	Seconds   float64   `json:"seconds"`
	Batch     int       `json:"insertBatch"`
	Updates   int       `json:"updateBatch"`
	Workers   int       `json:"workers"`
	Size      int       `json:"documentBytes"`

	First   int64        `json:"insertedBefore"` // documents inserted before the clock started
	Kinds   []KindResult `json:"kinds"`
	Windows WindowResult `json:"windows"`
	Errors  Errors       `json:"errors,omitempty"` // message → documents

	Partitions *PartitionResult `json:"partitions,omitempty"` // nil: the server is no gateway, or the collection has no layout
	Storage    *Storage         `json:"storage,omitempty"`    // nil: the server tells nothing of it
}

// KindResult is what became of the calls of one kind. Latencies are of calls, from when a call was meant to begin.
type KindResult struct {
	Kind      string  `json:"kind"`
	Asked     float64 `json:"askedPerMinute"` // documents
	Held      float64 `json:"heldPerMinute"`  // documents stored or changed
	Calls     int64   `json:"calls"`
	NotBegun  int64   `json:"callsNotBegun"` // that were meant to begin before the end
	Documents int64   `json:"documents"`     // stored or changed
	Unmatched int64   `json:"unmatched"`     // updates that found no document
	Failed    int64   `json:"failed"`
	Latencies
}

// Latencies are percentiles of calls' latencies, in microseconds.
type Latencies struct {
	P50  int64 `json:"p50Micros"`
	P90  int64 `json:"p90Micros"`
	P99  int64 `json:"p99Micros"`
	P999 int64 `json:"p999Micros"`
	Max  int64 `json:"maxMicros"`
}

// LatenciesOf reads them from a histogram of microseconds.
func LatenciesOf(h *hdrhistogram.Histogram) Latencies {
	p := h.ValueAtPercentilesSlice([]float64{50, 90, 99, 99.9})
	return Latencies{p[0], p[1], p[2], p[3], h.Max()}
}

// Row is the latencies as cells of a table, in milliseconds.
func (l Latencies) Row() []string {
	return []string{Millis(l.P50), Millis(l.P90), Millis(l.P99), Millis(l.P999), Millis(l.Max)}
}

// WindowResult looks at inserts by windows of one second, each counted once: as one in which a partition was dropped, else as one in which
// partitions were made, else as another.
type WindowResult struct {
	Dropped WindowGroup `json:"dropped"`
	Made    WindowGroup `json:"made"`
	Others  WindowGroup `json:"others"`
}

// WindowGroup is windows of one sort; latencies in microseconds.
type WindowGroup struct {
	Windows int   `json:"windows"`
	P99     int64 `json:"p99Micros"`             // of all calls in them
	P90     int64 `json:"p90OfWindowsP99Micros"` // 90th percentile of the windows' own p99
	Worst   int64 `json:"worstWindowP99Micros"`
}

// PartitionResult is what the gateway's upkeep did to the collection's partitions meanwhile; partitions that a first write made are not among them.
type PartitionResult struct {
	Made    int     `json:"made"`
	Hidden  int     `json:"hidden"`
	Dropped int     `json:"dropped"`
	Failed  int     `json:"failed"` // attempts; the next pass tries again
	Drops   []Event `json:"drops"`
	Stopped string  `json:"stopped,omitempty"` // why retention stopped, if it did
}

// Wait returns what the load came to when it has ended. The result is there also with an error, which then says what could not be asked.
func (b *Bench) Wait(ctx context.Context) (*Result, error) {
	<-b.crew.Done()
	events, eventsErr := b.upkeep.poll(ctx)
	store, storeErr := Stored(ctx, b.collection.Database().Client())
	r := &Result{
		Namespace: b.collection.Database().Name() + "." + b.collection.Name(), Server: b.server.Version,
		Started: b.recorder.start, Seconds: b.crew.Ended().Sub(b.recorder.start).Seconds(),
		Batch: b.options.Batch, Updates: b.options.UpdateBatch, Workers: b.options.Workers, Size: b.options.Size,
		First: b.seed, Errors: b.recorder.errors, Storage: store,
	}
	for k := range kinds {
		r.Kinds = append(r.Kinds, b.kind(k))
	}
	r.Windows = b.windows(events)
	if b.upkeep.there() {
		r.Partitions = partitionResult(events)
	}
	return r, errors.Join(eventsErr, storeErr)
}

// kind sums up one kind of call; of updates every other call is of either kind.
func (b *Bench) kind(k Kind) KindResult {
	t := &b.recorder.kinds[k]
	r := KindResult{Kind: k.String(), Calls: t.Calls, Documents: t.Done, Unmatched: t.Unmatched, Failed: t.Failed}
	p, asked := b.inserts, float64(b.options.Inserts)
	if k != Insert {
		p, asked = b.updates, float64(b.options.Updates)/2
	}
	if p == nil {
		return r
	}
	// The clock stops when the rate does: what was begun by then may take longer.
	until := b.crew.Ended()
	if !p.end.IsZero() && until.After(p.end) {
		until = p.end
	}
	due := p.Due(until)
	switch k {
	case UpdateByID:
		due = (due + 1) / 2
	case UpdateByIDAndTime:
		due /= 2
	}
	r.NotBegun = max(0, due-t.Calls)
	r.Asked = asked
	r.Held = float64(t.Done) / until.Sub(p.start).Minutes()
	r.Latencies = LatenciesOf(t.Latency)
	return r
}

// windows sorts the windows by what happened in them.
func (b *Bench) windows(events []Event) WindowResult {
	dropped, made := b.touched(events, "dropped"), b.touched(events, "made")
	var in, during, others group
	for i, w := range b.recorder.windows {
		switch {
		case len(w) == 0:
		case dropped[i]:
			in.add(w)
		case made[i]:
			during.add(w)
		default:
			others.add(w)
		}
	}
	return WindowResult{Dropped: in.result(), Made: during.result(), Others: others.result()}
}

// touched are the windows that the work of an action's events lies in.
func (b *Bench) touched(events []Event, action string) map[int]bool {
	in := make(map[int]bool)
	for _, e := range events {
		if !e.Did(action) {
			continue
		}
		end := e.At.Sub(b.upkeep.start)
		for i := int(max(0, end-e.Took()) / window); i <= int(end/window); i++ {
			in[i] = true
		}
	}
	return in
}

// group gathers windows of one sort.
type group struct {
	all  []int32
	p99s []int32
}

func (g *group) add(w []int32) {
	g.all = append(g.all, w...)
	g.p99s = append(g.p99s, int32(Percentile(w, 99).Microseconds()))
}

func (g *group) result() WindowGroup {
	return WindowGroup{
		Windows: len(g.p99s), P99: Percentile(g.all, 99).Microseconds(),
		P90: Percentile(g.p99s, 90).Microseconds(), Worst: Percentile(g.p99s, 100).Microseconds(),
	}
}

func partitionResult(events []Event) *PartitionResult {
	r := &PartitionResult{Drops: []Event{}}
	for _, e := range events {
		switch {
		case e.Error != "" || e.Action == "failed":
			r.Failed++
		case e.Action == "made":
			r.Made++
		case e.Action == "hidden":
			r.Hidden++
		case e.Action == "dropped":
			r.Dropped++
			r.Drops = append(r.Drops, e)
		case e.Action == "stopped":
			r.Stopped = e.Reason
		}
	}
	return r
}
