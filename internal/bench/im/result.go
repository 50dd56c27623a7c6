package im

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"oxbow/internal/bench"
)

// Result is what a load came to.
type Result struct {
	Namespace string    `json:"namespace"`
	Server    string    `json:"server"` // MongoDB's version that it answers as
	Started   time.Time `json:"started"`
	Seconds   float64   `json:"seconds"`
	Users     int       `json:"users"`
	Workers   int       `json:"workers"`
	Size      int       `json:"documentBytes"`
	WhenRead  string    `json:"whenRead"` // mark or delete

	Kinds  []KindResult `json:"kinds"`
	Errors bench.Errors `json:"errors,omitempty"` // message → documents

	Before  int64          `json:"documentsBefore"`
	After   int64          `json:"documentsAfter"`
	Unread  int64          `json:"unread"`            // written in this run and not settled
	Storage *bench.Storage `json:"storage,omitempty"` // nil: the server tells nothing of it
}

// KindResult is what became of the calls of one kind. Latencies are of calls: writes and reads from when a call was meant to begin, marks and deletes from when
// the read before them had ended.
type KindResult struct {
	Kind      string  `json:"kind"`
	Asked     float64 `json:"askedPerSecond"` // calls; of marks and deletes 0: one for each login that found messages
	Held      float64 `json:"heldPerSecond"`  // calls
	Calls     int64   `json:"calls"`
	NotBegun  int64   `json:"callsNotBegun"` // that were meant to begin before the end
	Messages  int64   `json:"messages"`      // written, read, marked or deleted
	Unmatched int64   `json:"unmatched"`     // that were read and not there any more when they were to be marked or deleted
	Failed    int64   `json:"failed"`
	bench.Latencies
}

// Wait returns what the load came to when it has ended. The result is there also with an error, which then says what could not be asked.
func (b *Bench) Wait(ctx context.Context) (*Result, error) {
	<-b.crew.Done()
	after, countErr := b.collection.EstimatedDocumentCount(ctx)
	store, storeErr := bench.Stored(ctx, b.collection.Database().Client())
	r := &Result{
		Namespace: b.collection.Database().Name() + "." + b.collection.Name(), Server: b.server.Version,
		Started: b.start, Seconds: b.crew.Ended().Sub(b.start).Seconds(),
		Users: b.options.Users, Workers: b.options.Workers, Size: b.options.Size, WhenRead: b.options.name(Settle),
		Errors: b.errors, Before: b.before, After: after, Storage: store,
	}
	for k := range kinds {
		r.Kinds = append(r.Kinds, b.kind(k))
	}
	r.Unread = r.Kinds[Write].Messages - r.Kinds[Settle].Messages
	return r, errors.Join(countErr, storeErr)
}

func (b *Bench) kind(k Kind) KindResult {
	t := &b.kinds[k]
	until := b.crew.Ended()
	if d := b.options.Duration; d > 0 && until.After(b.start.Add(d)) {
		until = b.start.Add(d) // the clock stops when the rate does
	}
	r := KindResult{
		Kind: b.options.name(k), Held: float64(t.Calls) / until.Sub(b.start).Seconds(), Calls: t.Calls,
		Messages: t.Done, Unmatched: t.Unmatched, Failed: t.Failed, Latencies: bench.LatenciesOf(t.Latency),
	}
	switch k {
	case Write:
		r.Asked, r.NotBegun = float64(b.options.Messages), max(0, b.writes.Due(until)-t.Calls)
	case Read:
		r.Asked, r.NotBegun = float64(b.options.Logins), max(0, b.logins.Due(until)-t.Calls)
	}
	return r
}

// Print writes a result as a table for people.
func (r *Result) Print(w io.Writer) error {
	p := &bench.Printer{W: w}
	p.Line("%s of offline messages on %s, a server that answers as MongoDB %s, from %s", bench.Seconds(r.Seconds), r.Namespace, r.Server,
		r.Started.UTC().Format(time.RFC3339))
	p.Line("messages of %d bytes for %d users, %d workers each for writes and logins; what was read: %s", r.Size, r.Users, r.Workers, r.WhenRead)
	p.Line("")
	rows := [][]string{{"", "asked/s", "held/s", "calls", "messages", "p50", "p90", "p99", "p99.9", "max", "failed", "unmatched", "calls not begun"}}
	for _, k := range r.Kinds {
		asked := "-"
		if k.Asked > 0 {
			asked = fmt.Sprintf("%.0f", k.Asked)
		}
		row := append([]string{k.Kind, asked, fmt.Sprintf("%.0f", k.Held), fmt.Sprint(k.Calls), fmt.Sprint(k.Messages)}, k.Row()...)
		rows = append(rows, append(row, fmt.Sprint(k.Failed), fmt.Sprint(k.Unmatched), fmt.Sprint(k.NotBegun)))
	}
	p.Table(rows)
	p.Line("")
	p.Line("documents: %d before, %d after, of which %d of this run are not read yet", r.Before, r.After, r.Unread)
	if s := r.Storage; s != nil {
		p.Line("store: %s in tables, %s in the log", bench.Megabytes(s.TableBytes), bench.Megabytes(s.LogBytes))
	}
	p.Errors(r.Errors)
	return p.Err
}
