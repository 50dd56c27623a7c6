package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Options tell how to load.
type Options struct {
	Batch   int // documents an insert; 0: 1,000
	Workers int // inserts at a time; 0: 2
	// From is the line to begin with, for going on after a stop; lines before it are read and passed over.
	From int
	// Failed is told of each document that the server refused; it is called by one goroutine at a time.
	Failed func(line int, err error)
	// Progress is told of documents stored, and of the line before which nothing is missing, after each batch; by one goroutine at a time.
	Progress func(stored int64, line int)
}

// Result is what a load came to.
type Result struct {
	Stored   int64
	Failed   int64
	NextLine int // nothing before this line is missing, apart from what failed: the From to go on with
}

// batch is neighbouring documents.
type batch struct {
	number int // from 0
	docs   []any
	lines  []int
	next   int // the line behind the last one
}

// Run inserts a source's documents into a collection. Documents that the server refuses (a duplicate _id, a time that has no place) are
// told to Failed and passed over; an unreadable line, a server that can't be reached, or the end of ctx stops it. Result is right in any case.
func Run(ctx context.Context, collection *mongo.Collection, source Source, o Options) (Result, error) {
	if o.Batch <= 0 {
		o.Batch = 1000
	}
	if o.Workers <= 0 {
		o.Workers = 2
	}
	l := &loading{options: o, collection: collection, waiting: make(map[int]int)}
	l.result.NextLine = max(1, o.From)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	batches := make(chan batch)
	var workers sync.WaitGroup
	for range o.Workers {
		workers.Go(func() {
			for b := range batches {
				if err := l.insert(ctx, b); err != nil {
					cancel(err)
				}
			}
		})
	}
	readErr := l.read(ctx, source, batches)
	close(batches)
	workers.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return l.result, cause
	}
	return l.result, readErr
}

// loading is a running load.
type loading struct {
	options    Options
	collection *mongo.Collection

	mu      sync.Mutex
	result  Result
	done    int         // batches before this number are all stored
	waiting map[int]int // number → next line, of batches stored out of turn
}

// read cuts the source into batches.
func (l *loading) read(ctx context.Context, source Source, batches chan<- batch) error {
	b := batch{}
	flush := func() bool {
		if len(b.docs) == 0 {
			return true
		}
		select {
		case batches <- b:
			b = batch{number: b.number + 1}
			return true
		case <-ctx.Done():
			return false
		}
	}
	for {
		doc, line, err := source.Next()
		if err != nil {
			if !flush() || errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if line < l.options.From {
			continue
		}
		b.docs = append(b.docs, doc)
		b.lines = append(b.lines, line)
		b.next = line + 1
		if len(b.docs) == l.options.Batch && !flush() {
			return nil
		}
	}
}

// insert stores a batch and counts it.
func (l *loading) insert(ctx context.Context, b batch) error {
	failed := 0
	_, err := l.collection.InsertMany(ctx, b.docs, options.InsertMany().SetOrdered(false))
	var refused mongo.BulkWriteException
	switch {
	case errors.As(err, &refused) && refused.WriteConcernError == nil:
		failed = len(refused.WriteErrors)
	case err != nil:
		return fmt.Errorf("insert lines %d to %d: %w", b.lines[0], b.lines[len(b.lines)-1], err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.options.Failed != nil {
		for _, e := range refused.WriteErrors {
			l.options.Failed(b.lines[e.Index], e)
		}
	}
	l.result.Failed += int64(failed)
	l.result.Stored += int64(len(b.docs) - failed)
	l.waiting[b.number] = b.next
	for next, ok := l.waiting[l.done]; ok; next, ok = l.waiting[l.done] {
		delete(l.waiting, l.done)
		l.result.NextLine = next
		l.done++
	}
	if l.options.Progress != nil {
		l.options.Progress(l.result.Stored, l.result.NextLine)
	}
	return nil
}
