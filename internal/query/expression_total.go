package query

import (
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// The accumulators that are also expressions take the values of a list, or the elements of the array that is their only argument
// (https://www.mongodb.com/docs/manual/reference/operator/aggregation/sum/).

// operands returns what such an expression runs over; elements go onto the stack.
func (s *Scratch) operands(args []bson.Value) []bson.Value {
	if len(args) != 1 || args[0].Type != bson.TypeArray {
		return args
	}
	mark := len(s.stack)
	s.pushElements(args[0].Data)
	return s.stack[mark:]
}

func evalSum(s *Scratch, args []bson.Value) (bson.Value, error) {
	var t summation
	for _, v := range s.operands(args) {
		t.add(v)
	}
	return t.result(s), nil
}

func evalAvg(s *Scratch, args []bson.Value) (bson.Value, error) {
	var t summation
	n := int64(0)
	for _, v := range s.operands(args) {
		if t.add(v) {
			n++
		}
	}
	if n == 0 {
		return bson.Null, nil
	}
	return t.mean(s, n), nil
}

// extremum is $min with sign 1 and $max with sign -1; null and missing don't count.
func extremum(sign int) func(s *Scratch, args []bson.Value) (bson.Value, error) {
	return func(s *Scratch, args []bson.Value) (bson.Value, error) {
		best := bson.Null
		for _, v := range s.operands(args) {
			if !nullish(v) && (best.Type == bson.TypeNull || sign*compareValues(v, best) < 0) {
				best = v
			}
		}
		return best, nil
	}
}

func deviationOf(sample bool) func(s *Scratch, args []bson.Value) (bson.Value, error) {
	return func(s *Scratch, args []bson.Value) (bson.Value, error) {
		var d deviation
		for _, v := range s.operands(args) {
			d.add(v)
		}
		return d.result(s, sample), nil
	}
}

func evalMergeObjects(s *Scratch, args []bson.Value) (bson.Value, error) {
	var out fieldSet
	for _, v := range s.operands(args) {
		if err := checkMergeable(v); err != nil {
			return v, err
		}
		out.merge(v.Data)
	}
	return s.document(out.fields)
}

// checkMergeable refuses what $mergeObjects can't merge; null merges nothing.
func checkMergeable(v bson.Value) error {
	if v.Type != bson.TypeDocument && !nullish(v) {
		return mongoerr.New(40400, "$mergeObjects requires object inputs, but input %s is of type %s", show(v), bson.TypeName(v.Type))
	}
	return nil
}
