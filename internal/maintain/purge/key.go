package purge

import (
	"encoding/binary"
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/query"
)

// between returns the value at a share of the way from lo to hi, and false where these can't be reckoned with: dates, whole numbers, doubles and ObjectIds
// can.
func between(lo, hi bson.Value, share float64) (bson.Value, bool) {
	a, b, ok := ends(lo, hi)
	if !ok {
		return bson.Value{}, false
	}
	at := a + (b-a)*share
	switch {
	case lo.Type == bson.TypeDateTime:
		return bson.Value{Type: bson.TypeDateTime, Data: bsoncore.AppendDateTime(nil, int64(at))}, true
	case lo.Type == bson.TypeObjectID:
		var id [12]byte
		binary.BigEndian.PutUint64(id[:], uint64(at))
		return bson.Value{Type: bson.TypeObjectID, Data: id[:]}, true
	case lo.Type == bson.TypeDouble || hi.Type == bson.TypeDouble:
		return bson.Value{Type: bson.TypeDouble, Data: bsoncore.AppendDouble(nil, at)}, true
	}
	return bson.Value{Type: bson.TypeInt64, Data: bsoncore.AppendInt64(nil, int64(at))}, true
}

// shareOf is between turned round: how far v lies on the way from lo to hi, in [0, 1].
func shareOf(lo, hi, v bson.Value) (float64, bool) {
	a, b, ok := ends(lo, hi)
	at, place := position(v)
	if !ok || !place || b <= a {
		return 0, false
	}
	return max(0, min(1, (at-a)/(b-a))), true
}

func ends(lo, hi bson.Value) (a, b float64, ok bool) {
	if bson.Class(lo.Type) != bson.Class(hi.Type) {
		return 0, 0, false
	}
	a, first := position(lo)
	b, second := position(hi)
	return a, b, first && second
}

// position is where a value lies among those of its class, if that can be said with a number. Neighbours may get the same.
func position(v bson.Value) (float64, bool) {
	switch v.Type {
	case bson.TypeDateTime:
		ms, ok := v.DateTimeOK()
		return float64(ms), ok
	case bson.TypeObjectID:
		id, ok := v.ObjectIDOK()
		return float64(binary.BigEndian.Uint64(id[:8])), ok
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble:
		f, ok := v.AsFloat64OK()
		return f, ok && math.Abs(f) < 1<<62
	}
	return 0, false
}

// borders returns up to n-1 values that cut a span into n: quantiles of a sample where there is one, else even steps where the key allows it.
func borders(lo, hi bson.Value, n int, sample []bson.Value) []bson.Value {
	var at []bson.Value
	for i := 1; i < n; i++ {
		var v bson.Value
		ok := true
		if len(sample) > 0 {
			v = sample[i*len(sample)/n]
		} else {
			v, ok = between(lo, hi, float64(i)/float64(n))
		}
		if ok && bson.Compare(v, lo) > 0 && bson.Compare(v, hi) < 0 && (len(at) == 0 || bson.Compare(v, at[len(at)-1]) > 0) {
			at = append(at, v)
		}
	}
	return at
}

// inOrder sorts the values of a sample that lie between two others.
func inOrder(sample []bson.Value, lo, hi bson.Value) []bson.Value {
	inside := slices.DeleteFunc(sample, func(v bson.Value) bool {
		return bson.Class(v.Type) != bson.Class(lo.Type) || bson.Compare(v, lo) <= 0 || bson.Compare(v, hi) >= 0
	})
	slices.SortFunc(inside, bson.Compare)
	return inside
}

// boundedSpan returns the span that a filter sets on one of its paths by comparisons, those of _id first, then those with two ends.
func boundedSpan(filter bson.Document) (span, bool) {
	spans := make(map[string]*span)
	var paths []string
	for _, n := range conjuncts(filter) {
		c, ok := n.(*query.Compare)
		if !ok || c.Op == query.Eq || !ordered(c.Value.Type) {
			continue
		}
		path := c.Path.String()
		s := spans[path]
		if s == nil {
			s = &span{path: path}
			spans[path] = s
			paths = append(paths, path)
		}
		s.narrow(c.Op, c.Value)
	}
	best := -1
	for i, p := range paths {
		if best < 0 || rank(spans[p]) > rank(spans[paths[best]]) {
			best = i
		}
	}
	if best < 0 {
		return span{}, false
	}
	return *spans[paths[best]], true
}

func rank(s *span) int {
	n := 0
	if s.path == "_id" {
		n += 2
	}
	if s.lo.Type != 0 && s.hi.Type != 0 {
		n++
	}
	return n
}

// ordered reports whether the comparisons of a type hold for values of its class alone, which one after the other are what an index gives.
func ordered(t bson.Type) bool {
	switch t {
	case bson.TypeDateTime, bson.TypeObjectID, bson.TypeString, bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128:
		return true
	}
	return false
}

// narrow sets one end of a span; of several the first one counts, which may be wider than they are together: the whole filter is part of every delete.
func (s *span) narrow(op query.Op, v bson.Value) {
	switch {
	case (op == query.Gt || op == query.Gte) && s.lo.Type == 0:
		s.lo, s.open = v, op == query.Gt
	case (op == query.Lt || op == query.Lte) && s.hi.Type == 0:
		s.hi, s.closed = v, op == query.Lte
	}
}
