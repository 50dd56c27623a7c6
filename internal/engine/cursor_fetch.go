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
	wait   int // documents to seek before a step is tried again
	misses int // steps that led elsewhere, since the last that did not
}

// maxMisses bounds how seldom a step is tried: once in 128 documents. A step in vain costs itself and makes the next seek dearer.
const maxMisses = 7

func newFetcher(documents []byte, from pebble.Reader) (*fetcher, error) {
	iter, err := from.NewIter(&pebble.IterOptions{LowerBound: documents, UpperBound: prefixEnd(documents)})
	if err != nil {
		return nil, fmt.Errorf("open iterator: %w", err)
	}
	return &fetcher{iter: iter, key: slices.Clone(documents), prefix: len(documents)}, nil
}

// document returns the document with an _id, by its key, good until the next call, or nil.
func (f *fetcher) document(id []byte) (bson.Document, error) {
	f.key = append(f.key[:f.prefix], id...)
	if f.wait--; f.wait < 0 {
		if f.iter.Valid() && f.iter.Next() && bytes.Equal(f.iter.Key(), f.key) {
			f.wait, f.misses = 0, 0
			return f.iter.ValueAndErr()
		}
		f.misses = min(f.misses+1, maxMisses)
		f.wait = 1<<f.misses - 1
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
