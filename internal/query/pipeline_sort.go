package query

import (
	"math"

	"oxbow/internal/bson"
	"oxbow/internal/memory"
	"oxbow/internal/mongoerr"
)

// sortStage is $sort. limit is how many documents the stages behind it let through, 0 for all.
type sortStage struct {
	sort     *Sort
	raw      bson.Document
	limit    int
	maxBytes int64
	memory   *memory.Budget
}

func parseSortStage(arg bson.Value, opts *PipelineOptions) (stage, error) {
	if arg.Type != bson.TypeDocument {
		return nil, mongoerr.New(15973, "the $sort key specification must be an object")
	}
	s, natural, err := ParseSort(arg.Data)
	switch {
	case err != nil:
		return nil, err
	case natural != 0:
		return nil, mongoerr.New(mongoerr.FieldPathDollar, "FieldPath field names may not start with '$'. Consider using $getField or $setField.")
	case len(s.Keys) == 0:
		return nil, mongoerr.New(15976, "$sort stage must have at least one sort key")
	}
	return &sortStage{sort: s, raw: arg.Data, maxBytes: opts.MaxBytes, memory: opts.Memory}, nil
}

func (*sortStage) name() string { return "$sort" }

func (s *sortStage) run(in Documents) Documents {
	g := &gathered{in: in, memory: s.memory.Account(memory.Queries)}
	sorter := NewSorter(s.sort, s.limit, s.maxBytes, &g.memory)
	var sorted []bson.Document
	done := false
	g.add = func(_ *Scratch, doc bson.Document) error { return sorter.Add(doc) }
	g.next = func(*Scratch) (bson.Document, error) {
		if !done {
			sorted, sorter, done = sorter.Sorted(), nil, true
		}
		if len(sorted) == 0 {
			return nil, nil
		}
		doc := sorted[0]
		sorted[0] = nil
		sorted = sorted[1:]
		g.memory.Try(-int64(len(doc)))
		return doc, nil
	}
	return g
}

// boundSorts tells each $sort how many documents a $limit behind it, or a $skip and a $limit, can let through.
func boundSorts(stages []stage) {
	for i, s := range stages {
		sort, ok := s.(*sortStage)
		if !ok {
			continue
		}
		rest, skip := stages[i+1:], int64(0)
		for len(rest) > 0 {
			if s, ok := rest[0].(*skipStage); ok && skip < math.MaxInt32 && s.n < math.MaxInt32 {
				skip += s.n
				rest = rest[1:]
				continue
			}
			if l, ok := rest[0].(*limitStage); ok && l.n < math.MaxInt32 {
				sort.limit = int(skip + l.n)
			}
			break
		}
	}
}
