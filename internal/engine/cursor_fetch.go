package engine

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"oxbow/internal/bson"
)

// fetcher reads documents by the keys of their _id. Documents that lie side by side, as those of an index on the time of insertion do, are
// reached by steps instead of seeks.
type fetcher struct {
	iter   *pebble.Iterator
	key    []byte // prefix of the documents' keys, then the last key asked for
	prefix int
	near   bool // the last document asked for lay directly behind the one before
	count  int
}

// stepTrials is how many documents are sought before one is looked for by a step again.
const stepTrials = 8

func newFetcher(documents []byte, snapshot *pebble.Snapshot, uncached bool) (*fetcher, error) {
	o := pebble.IterOptions{LowerBound: documents, UpperBound: prefixEnd(documents)}
	if uncached {
		o.Category = uncachedReads
	}
	iter, err := snapshot.NewIter(&o)
	if err != nil {
		return nil, fmt.Errorf("open iterator: %w", err)
	}
	return &fetcher{iter: iter, key: slices.Clone(documents), prefix: len(documents)}, nil
}

// document returns the document with an _id, good until the next call, or nil.
func (f *fetcher) document(id []byte) (bson.Document, error) {
	f.key = append(f.key[:f.prefix], id...)
	f.count++
	if f.near || f.count%stepTrials == 0 {
		f.near = f.iter.Valid() && f.iter.Next() && bytes.Equal(f.iter.Key(), f.key)
		if f.near {
			return f.iter.ValueAndErr()
		}
	}
	if !f.iter.SeekGE(f.key) || !bytes.Equal(f.iter.Key(), f.key) {
		if err := f.iter.Error(); err != nil {
			return nil, fmt.Errorf("fetch document: %w", err)
		}
		return nil, nil
	}
	return f.iter.ValueAndErr()
}

func (f *fetcher) close() error {
	if f == nil {
		return nil
	}
	return f.iter.Close()
}
