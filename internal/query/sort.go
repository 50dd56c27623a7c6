package query

import "oxbow/internal/bson"

// Sort is a compiled sort order. The zero Sort is "no order".
type Sort struct {
	Keys []SortKey
}

// SortKey is one path of a sort.
type SortKey struct {
	Path bson.Path
	Desc bool
}

// ParseSort compiles {path: 1 or -1, …}; {$natural: …} gives no keys and natural ±1. At most 32 keys, no repeats; directions that are no 1 or -1 are BadValue.
func ParseSort(spec bson.Document) (s *Sort, natural int, err error) { panic("unbuilt") }

// AppendKey appends doc's sort key to dst: bytes.Compare of two keys is the order of their documents. A path that goes through
// arrays sorts by its least value, or by its greatest with Desc; an empty array sorts below null, a missing field as null
// (https://www.mongodb.com/docs/manual/reference/method/cursor.sort/). Two keys of one sort that go through different arrays of a
// document are BadValue.
func (s *Sort) AppendKey(dst []byte, doc bson.Document) ([]byte, error) { panic("unbuilt") }

// Sorter collects documents and gives them back in order, keeping at most limit of them (0: all) and at most maxBytes in memory; beyond
// that Add fails with QueryExceededMemoryLimitNoDiskUseAllowed. The order of equal keys is the order of Add.
type Sorter struct{}

// NewSorter returns an empty Sorter. MongoDB's own limit is 100 MiB a sort.
func NewSorter(s *Sort, limit int, maxBytes int64) *Sorter { panic("unbuilt") }

// Add takes a copy of doc.
func (s *Sorter) Add(doc bson.Document) error { panic("unbuilt") }

// Sorted returns the documents in order; the Sorter must not be used afterwards.
func (s *Sorter) Sorted() []bson.Document { panic("unbuilt") }
