package route

import (
	"encoding/binary"
	"math"
	"slices"

	"oxbow/internal/bson"
	"oxbow/internal/query"
)

// times returns the times of a predicate on the time field.
func (r reader) times(t *Time, n query.Node, not bool) set {
	switch n := n.(type) {
	case *query.Compare:
		return comparison(t, n.Op, n.Value, not)
	case *query.In:
		if not {
			return anything
		}
		return points(t, n.Values)
	case *query.Exists:
		return when(n.Want != not) // the field is always there
	case *query.Type:
		return ofTypes(t, n.Types, not)
	case *query.Regex, *query.Size, *query.ElemMatch: // neither strings nor arrays are stored
		return when(not)
	case *query.Mod, *query.Bits:
		if t.Unit == Date || t.Unit == ObjectID {
			return when(not)
		}
	}
	return anything
}

func when(may bool) set {
	if may {
		return anything
	}
	return nothing
}

// comparison returns the times that compare with a value as op says, or do not.
func comparison(t *Time, op query.Op, v bson.Value, not bool) set {
	if bson.Class(t.Unit.storedType()) != bson.Class(v.Type) {
		return acrossTypes(op, v.Type, not)
	}
	if n, ok := bson.NumberOf(v); ok && n.IsNaN() {
		return when(op != query.Eq || not)
	}
	if not {
		if op == query.Eq {
			return anything
		}
		op = opposite(op)
	}
	floor, ceil := t.Unit.steps(v)
	last := t.Unit.max()
	i := interval{0, last}
	switch op {
	case query.Eq:
		i = interval{ceil, floor}
	case query.Lt:
		i.hi = ceil - 1
	case query.Lte:
		i.hi = floor
	case query.Gt:
		i.lo = floor + 1
	case query.Gte:
		i.lo = ceil
	default:
		return anything
	}
	if t.Unit == ObjectID {
		// Other ids of the same second are on both sides.
		i = interval{min(i.lo, floor), max(i.hi, floor)}
	}
	i = interval{max(i.lo, 0), min(i.hi, last)}
	if i.lo > i.hi {
		return nothing
	}
	return set{{times: []interval{i}}}
}

// acrossTypes answers a comparison of the stored type with a value of another type: it fails, but with MinKey and MaxKey, which compare
// with all types.
func acrossTypes(op query.Op, other bson.Type, not bool) set {
	if op != query.Eq && (other == bson.TypeMinKey || other == bson.TypeMaxKey) {
		return anything
	}
	return when(not)
}

func opposite(op query.Op) query.Op {
	switch op {
	case query.Lt:
		return query.Gte
	case query.Lte:
		return query.Gt
	case query.Gt:
		return query.Lte
	default:
		return query.Lt
	}
}

// points returns the times that equal one of some values.
func points(t *Time, values []bson.Value) set {
	class := bson.Class(t.Unit.storedType())
	times := make([]interval, 0, len(values))
	for _, v := range values {
		if bson.Class(v.Type) != class {
			continue
		}
		if n, ok := bson.NumberOf(v); ok && n.IsNaN() {
			continue
		}
		if floor, ceil := t.Unit.steps(v); floor == ceil && floor >= 0 && floor <= t.Unit.max() {
			times = append(times, interval{floor, floor})
		}
	}
	if len(times) == 0 {
		return nothing
	}
	return set{{times: merged(times)}}
}

// ofTypes returns the times whose type is one of some, or is none of them.
func ofTypes(t *Time, types []bson.Type, not bool) set {
	storable := []bson.Type{t.Unit.storedType()}
	if bson.IsNumber(storable[0]) {
		storable = []bson.Type{bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128}
	}
	for _, s := range storable {
		if slices.Contains(types, s) != not {
			return anything
		}
	}
	return nothing
}

// storedType returns the type, or one of the types, that a unit's field holds.
func (u Unit) storedType() bson.Type {
	switch u {
	case Date:
		return bson.TypeDateTime
	case ObjectID:
		return bson.TypeObjectID
	default:
		return bson.TypeInt64
	}
}

// beyondSteps stands for values that no unit can store, so that one can still be added to it.
const beyondSteps = math.MaxInt64 / 2

// steps returns the whole steps of the unit at and below, and at and above, a value of the stored class that is not NaN. They are equal
// when the value is whole, and ±beyondSteps where it is out of range.
func (u Unit) steps(v bson.Value) (floor, ceil int64) {
	if ms, ok := v.DateTimeOK(); ok {
		ms = min(max(ms, -beyondSteps), beyondSteps)
		return ms, ms
	}
	if id, ok := v.ObjectIDOK(); ok {
		second := int64(binary.BigEndian.Uint32(id[:4]))
		return second, second
	}
	n, _ := bson.NumberOf(v)
	whole, ok := n.TruncInt64()
	if !ok || whole < -beyondSteps || whole > beyondSteps {
		whole = beyondSteps * int64(n.Sign())
		return whole, whole
	}
	floor, ceil = whole, whole
	if _, exact := n.Int64(); !exact {
		if n.Sign() < 0 {
			floor--
		} else {
			ceil++
		}
	}
	return floor, ceil
}
