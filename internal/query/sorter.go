package query

import (
	"bytes"
	"container/heap"
	"slices"

	"oxbow/internal/bson"
	"oxbow/internal/memory"
	"oxbow/internal/mongoerr"
)

// Sorter collects documents and gives them back in order, keeping at most limit of them (0: all) and at most maxBytes in memory; beyond
// that Add fails with QueryExceededMemoryLimitNoDiskUseAllowed. The order of equal keys is the order of Add.
type Sorter struct {
	order    *Sort
	limit    int
	maxBytes int64
	memory   *memory.Account
	bytes    int64
	added    uint64
	key      []byte // of the document being added
	entries  sortHeap
}

// sortEntry is one document that a Sorter holds.
type sortEntry struct {
	data   []byte // the key, then the document
	keyLen int
	serial uint64 // its place among the calls of Add
}

func (e *sortEntry) key() []byte { return e.data[:e.keyLen] }

// entryBytes is what an entry costs besides its data.
const entryBytes = 48

// NewSorter returns an empty Sorter. MongoDB's own limit is 100 MiB a sort. The account, nil for none, is charged for what the Sorter holds and, when it
// has sorted, the caller.
func NewSorter(s *Sort, limit int, maxBytes int64, account *memory.Account) *Sorter {
	return &Sorter{order: s, limit: limit, maxBytes: maxBytes, memory: account}
}

// Add takes a copy of doc.
func (s *Sorter) Add(doc bson.Document) error {
	key, err := s.order.AppendKey(s.key[:0], doc)
	if err != nil {
		return err
	}
	s.key = key
	s.added++
	if s.limit > 0 && len(s.entries) == s.limit {
		return s.replaceLast(key, doc)
	}
	if err := s.reserve(int64(len(key) + len(doc) + entryBytes)); err != nil {
		return err
	}
	entry := sortEntry{keyLen: len(key), serial: s.added, data: make([]byte, 0, len(key)+len(doc))}
	entry.data = append(append(entry.data, key...), doc...)
	s.entries = append(s.entries, entry)
	if len(s.entries) == s.limit {
		heap.Init(&s.entries)
	}
	return nil
}

// replaceLast puts a document in the place of the last of a full Sorter, if it comes before that one.
func (s *Sorter) replaceLast(key []byte, doc bson.Document) error {
	last := &s.entries[0]
	if bytes.Compare(key, last.key()) >= 0 {
		return nil
	}
	was := cap(last.data)
	data := append(append(last.data[:0], key...), doc...)
	if err := s.reserve(int64(cap(data) - was)); err != nil {
		return err
	}
	*last = sortEntry{data: data, keyLen: len(key), serial: s.added}
	heap.Fix(&s.entries, 0)
	return nil
}

func (s *Sorter) reserve(n int64) error {
	s.bytes += n
	if s.bytes > s.maxBytes {
		return mongoerr.New(mongoerr.QueryExceededMemoryNoDiskUse,
			"Sort exceeded memory limit of %d bytes, but did not opt in to external sorting.", s.maxBytes)
	}
	return s.memory.Grow(n)
}

// Sorted returns the documents in order; the Sorter must not be used afterwards.
func (s *Sorter) Sorted() []bson.Document {
	slices.SortFunc(s.entries, func(a, b sortEntry) int { return compareEntries(&a, &b) })
	docs := make([]bson.Document, len(s.entries))
	for i, e := range s.entries {
		docs[i] = e.data[e.keyLen:]
	}
	s.entries = nil
	return docs
}

// sortHeap has the entry that comes last in the order on top.
type sortHeap []sortEntry

func (h sortHeap) Len() int           { return len(h) }
func (h sortHeap) Less(i, j int) bool { return compareEntries(&h[i], &h[j]) > 0 }
func (h sortHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push and Pop are heap.Interface's; a Sorter only replaces the top.
func (h *sortHeap) Push(x any) { *h = append(*h, x.(sortEntry)) }
func (h *sortHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func compareEntries(a, b *sortEntry) int {
	if c := bytes.Compare(a.key(), b.key()); c != 0 {
		return c
	}
	if a.serial < b.serial {
		return -1
	}
	if a.serial > b.serial {
		return 1
	}
	return 0
}
