package query

import (
	"strconv"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// accumulator gathers the values that an expression has for the documents of one group.
type accumulator interface {
	// add takes a value, which may be missing, and returns how many bytes of memory that took.
	add(v bson.Value) (grown int, err error)
	result(s *Scratch) (bson.Value, error)
}

// accumulatorSize is what the states cost beside the values they hold, in bytes.
const accumulatorSize = 64

// accumulatorNamed returns what makes an accumulator; nil for a name that is not built.
func accumulatorNamed(name string) func() accumulator {
	switch name {
	case "$sum", "$count":
		return func() accumulator { return &sumState{} }
	case "$avg":
		return func() accumulator { return &avgState{} }
	case "$min":
		return func() accumulator { return &extremumState{sign: 1} }
	case "$max":
		return func() accumulator { return &extremumState{sign: -1} }
	case "$first":
		return func() accumulator { return &endState{first: true} }
	case "$last":
		return func() accumulator { return &endState{} }
	case "$push":
		return func() accumulator { return &pushState{} }
	case "$addToSet":
		return func() accumulator { return &setState{seen: map[string]struct{}{}} }
	case "$mergeObjects":
		return func() accumulator { return &mergeState{} }
	case "$stdDevPop":
		return func() accumulator { return &deviationState{} }
	case "$stdDevSamp":
		return func() accumulator { return &deviationState{sample: true} }
	}
	return nil
}

type sumState struct{ total summation }

func (a *sumState) add(v bson.Value) (int, error) {
	a.total.add(v)
	return 0, nil
}

func (a *sumState) result(s *Scratch) (bson.Value, error) { return a.total.result(s), nil }

type avgState struct {
	total summation
	n     int64
}

func (a *avgState) add(v bson.Value) (int, error) {
	if a.total.add(v) {
		a.n++
	}
	return 0, nil
}

func (a *avgState) result(s *Scratch) (bson.Value, error) {
	if a.n == 0 {
		return bson.Null, nil
	}
	return a.total.mean(s, a.n), nil
}

type deviationState struct {
	d      deviation
	sample bool
}

func (a *deviationState) add(v bson.Value) (int, error) {
	a.d.add(v)
	return 0, nil
}

func (a *deviationState) result(s *Scratch) (bson.Value, error) { return a.d.result(s, a.sample), nil }

// held is a value with memory of its own.
type held struct{ value bson.Value }

func (h *held) set(v bson.Value) (grown int) {
	grown = max(0, len(v.Data)-cap(h.value.Data))
	h.value = bson.Value{Type: v.Type, Data: append(h.value.Data[:0], v.Data...)}
	return grown
}

// extremumState is $min with sign 1 and $max with sign -1; null and missing don't count.
type extremumState struct {
	held
	sign int
}

func (a *extremumState) add(v bson.Value) (int, error) {
	if nullish(v) || a.value.Type != 0 && a.sign*compareValues(v, a.value) >= 0 {
		return 0, nil
	}
	return a.set(v), nil
}

func (a *extremumState) result(*Scratch) (bson.Value, error) { return orNull(a.value), nil }

func orNull(v bson.Value) bson.Value {
	if v.Type == 0 {
		return bson.Null
	}
	return v
}

// endState is $first and $last.
type endState struct {
	held
	first, seen bool
}

func (a *endState) add(v bson.Value) (int, error) {
	if a.first && a.seen {
		return 0, nil
	}
	a.seen = true
	return a.set(v), nil
}

func (a *endState) result(*Scratch) (bson.Value, error) { return orNull(a.value), nil }

// listState is an array under construction.
type listState struct {
	buf []byte
	n   int
}

func (l *listState) append(v bson.Value) (grown int) {
	was := cap(l.buf)
	if l.buf == nil {
		l.buf = begin(l.buf)
	}
	l.buf = append(l.buf, byte(v.Type))
	l.buf = strconv.AppendInt(l.buf, int64(l.n), 10)
	l.buf = append(append(l.buf, 0), v.Data...)
	l.n++
	return cap(l.buf) - was
}

func (l *listState) result(*Scratch) (bson.Value, error) {
	if l.buf == nil {
		return emptyArray, nil
	}
	return bson.Value{Type: bson.TypeArray, Data: finish(l.buf, 0)}, nil
}

// pushState is $push; missing values are left out.
type pushState struct{ listState }

func (a *pushState) add(v bson.Value) (int, error) {
	if v.Type == 0 {
		return 0, nil
	}
	return a.append(v), nil
}

// setState is $addToSet, in the order in which the values came.
type setState struct {
	listState
	seen map[string]struct{}
	key  []byte
}

func (a *setState) add(v bson.Value) (int, error) {
	if v.Type == 0 {
		return 0, nil
	}
	a.key = bson.AppendKey(a.key[:0], v, false)
	if _, have := a.seen[string(a.key)]; have {
		return 0, nil
	}
	a.seen[string(a.key)] = struct{}{}
	return a.append(v) + len(a.key) + accumulatorSize, nil
}

// mergeState is $mergeObjects.
type mergeState struct{ doc []byte }

func (a *mergeState) add(v bson.Value) (int, error) {
	if err := checkMergeable(v); err != nil || nullish(v) {
		return 0, err
	}
	if len(v.Data) > maxScratch-len(a.doc) {
		return 0, mongoerr.New(mongoerr.ExceededMemoryLimit, "$mergeObjects used too much memory and cannot spill to disk. Memory limit: %d bytes", maxScratch)
	}
	var out fieldSet
	out.merge(a.doc)
	out.merge(v.Data)
	was := len(a.doc)
	doc := begin(make([]byte, 0, len(a.doc)+len(v.Data)))
	for _, f := range out.fields {
		doc = appendField(doc, f.name, f.value)
	}
	a.doc = finish(doc, 0)
	return max(0, len(a.doc)-was), nil
}

func (a *mergeState) result(*Scratch) (bson.Value, error) {
	if a.doc == nil {
		return bson.Value{Type: bson.TypeDocument, Data: emptyDocument}, nil
	}
	return bson.Value{Type: bson.TypeDocument, Data: a.doc}, nil
}
