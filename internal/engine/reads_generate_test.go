package engine

import (
	"fmt"
	"math"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"
)

// paths are those that generated documents have values at, and a few more.
var paths = []string{"a", "b", "c", "a.x", "a.y", "b.x", "a.x.z", "a.0"}

// hot are the few paths that indexes, filters and sorts of one table are about, so that they meet.
type hot []string

func genHot(r *rapid.T) hot {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(paths), 2, 3, rapid.ID[string]).Draw(r, "hot")
}

// path draws one of the hot paths, now and then any other.
func (h hot) path(r *rapid.T) string {
	if rapid.IntRange(0, 9).Draw(r, "any") == 0 {
		return rapid.SampledFrom(append([]string{"_id"}, paths...)).Draw(r, "path")
	}
	return rapid.SampledFrom(h).Draw(r, "path")
}

// paths draws between one and most different paths.
func (h hot) paths(r *rapid.T, most int) []string {
	return rapid.SliceOfNDistinct(rapid.Custom(h.path), 1, most, rapid.ID[string]).Draw(r, "paths")
}

// genScalar draws from few values of many types, so that they meet.
func genScalar(r *rapid.T) any {
	switch rapid.IntRange(0, 13).Draw(r, "type") {
	case 0, 1, 2:
		return rapid.Int32Range(-2, 4).Draw(r, "int32")
	case 3:
		return rapid.Int64Range(-2, 4).Draw(r, "int64")
	case 4:
		return rapid.SampledFrom([]float64{-1.5, 0, 1, 2.5, math.NaN(), math.Inf(1), math.Inf(-1)}).Draw(r, "double")
	case 5, 6:
		return rapid.SampledFrom([]string{"", "a", "ab", "b", "B"}).Draw(r, "string")
	case 7:
		return nil
	case 8:
		return rapid.Bool().Draw(r, "bool")
	case 9:
		return driver.NewDateTimeFromTime(time.UnixMilli(rapid.Int64Range(-1, 2).Draw(r, "date")))
	case 10:
		return driver.D{{Key: "x", Value: rapid.Int32Range(0, 2).Draw(r, "x")}}
	case 11:
		return rapid.SampledFrom([]any{driver.MinKey{}, driver.MaxKey{}, driver.Undefined{}, driver.Regex{Pattern: "a"}}).Draw(r, "rare")
	case 12:
		d, _ := driver.ParseDecimal128(rapid.SampledFrom([]string{"1", "2.5", "-2", "NaN"}).Draw(r, "decimal"))
		return d
	default:
		return rapid.SampledFrom([]any{driver.A{}, driver.A{int32(0)}, driver.A{int32(1), int32(2)}, driver.A{driver.A{int32(1)}}, driver.A{nil}}).Draw(r, "array")
	}
}

// genValue draws a value of a document: a scalar, a nested document, or an array of such.
func genValue(r *rapid.T, depth int) any {
	switch kind := rapid.IntRange(0, 9).Draw(r, "kind"); {
	case depth > 0 && kind < 2:
		var d driver.D
		for _, k := range []string{"x", "y", "z"} {
			if rapid.Bool().Draw(r, "has "+k) {
				d = append(d, driver.E{Key: k, Value: genValue(r, depth-1)})
			}
		}
		if d == nil {
			d = driver.D{}
		}
		return d
	case depth > 0 && kind < 5:
		a := driver.A{}
		for range rapid.IntRange(0, 3).Draw(r, "length") {
			a = append(a, genValue(r, depth-1))
		}
		return a
	}
	return genScalar(r)
}

func genFields(r *rapid.T) driver.D {
	var d driver.D
	arrays := rapid.IntRange(0, 2).Draw(r, "depth")
	for _, k := range []string{"a", "b", "c"} {
		if rapid.IntRange(0, 4).Draw(r, "has "+k) > 0 {
			d = append(d, driver.E{Key: k, Value: genValue(r, arrays)})
		}
	}
	return d
}

func genID(r *rapid.T, i int) any {
	switch rapid.IntRange(0, 3).Draw(r, "id") {
	case 0:
		return fmt.Sprintf("id%d", i)
	case 1:
		return driver.D{{Key: "k", Value: int32(i)}}
	}
	return int32(i)
}

func genIndex(r *rapid.T, h hot) driver.D {
	var key driver.D
	name := ""
	for _, p := range h.paths(r, 3) {
		direction := rapid.SampledFrom([]int32{1, -1}).Draw(r, "direction")
		key = append(key, driver.E{Key: p, Value: direction})
		name += fmt.Sprintf("%s_%d_", p, direction)
	}
	spec := driver.D{{Key: "key", Value: key}}
	switch rapid.IntRange(0, 5).Draw(r, "option") {
	case 0:
		spec, name = append(spec, driver.E{Key: "sparse", Value: true}), name+"sparse"
	case 1:
		spec, name = append(spec, driver.E{Key: "unique", Value: true}), name+"unique"
	case 2:
		p := rapid.SampledFrom(paths[:4]).Draw(r, "partial")
		cond := rapid.SampledFrom([]any{
			driver.D{{Key: "$exists", Value: true}}, driver.D{{Key: "$gt", Value: int32(0)}}, int32(1), driver.D{{Key: "$type", Value: "string"}},
		}).Draw(r, "condition")
		spec, name = append(spec, driver.E{Key: "partialFilterExpression", Value: driver.D{{Key: p, Value: cond}}}), name+"partial"
	}
	return append(spec, driver.E{Key: "name", Value: name})
}

func genFilter(r *rapid.T, h hot, depth int) driver.D {
	var f driver.D
	for range rapid.SampledFrom([]int{1, 1, 1, 2, 2, 3, 0}).Draw(r, "conditions") {
		if depth > 0 && rapid.IntRange(0, 3).Draw(r, "logical") == 0 {
			op := rapid.SampledFrom([]string{"$or", "$or", "$and", "$nor"}).Draw(r, "operator")
			var of driver.A
			for range rapid.IntRange(1, 3).Draw(r, "branches") {
				of = append(of, genFilter(r, h, depth-1))
			}
			f = append(f, driver.E{Key: op, Value: of})
			continue
		}
		if rapid.IntRange(0, 9).Draw(r, "expression") == 0 {
			f = append(f, driver.E{Key: "$expr", Value: genExpression(r, h)})
			continue
		}
		f = append(f, driver.E{Key: h.path(r), Value: genCondition(r)})
	}
	if f == nil {
		f = driver.D{}
	}
	return f
}

func genExpression(r *rapid.T, h hot) driver.D {
	compare := func() driver.D {
		op := rapid.SampledFrom([]string{"$eq", "$gt", "$gte", "$lt", "$lte", "$ne"}).Draw(r, "comparison")
		return driver.D{{Key: op, Value: driver.A{"$" + h.path(r), driver.D{{Key: "$literal", Value: genOperand(r)}}}}}
	}
	if rapid.Bool().Draw(r, "and") {
		return driver.D{{Key: "$and", Value: driver.A{compare(), compare()}}}
	}
	return compare()
}

// genCondition draws what stands behind a path: a value or operators.
func genCondition(r *rapid.T) any {
	if rapid.IntRange(0, 3).Draw(r, "plain") == 0 {
		return genOperand(r)
	}
	ops := genOperators(r)
	if rapid.IntRange(0, 4).Draw(r, "second") == 0 {
		for _, o := range genOperators(r) {
			if o.Key != ops[0].Key {
				ops = append(ops, o)
			}
		}
	}
	return ops
}

// genOperand draws a value that a filter may compare with.
func genOperand(r *rapid.T) any {
	switch v := genScalar(r).(type) {
	case driver.Regex, driver.Undefined:
		return "a"
	default:
		return v
	}
}

func genOperators(r *rapid.T) driver.D {
	op := rapid.SampledFrom([]string{"$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$gt", "$lte", "$in", "$nin", "$exists", "$type", "$regex", "$mod", "$size",
		"$not", "$elemMatch", "$elemMatch", "$all"}).Draw(r, "op")
	var v any
	switch op {
	case "$in", "$nin":
		list := driver.A{}
		for range rapid.IntRange(0, 3).Draw(r, "members") {
			member := genScalar(r)
			if _, ok := member.(driver.Undefined); ok {
				member = nil
			}
			list = append(list, member)
		}
		v = list
	case "$all":
		v = driver.A{rapid.Int32Range(0, 3).Draw(r, "all"), rapid.Int32Range(0, 3).Draw(r, "of")}
	case "$exists":
		v = rapid.Bool().Draw(r, "exists")
	case "$type":
		v = rapid.SampledFrom([]any{"number", "string", "array", "null", "object", "bool", "date"}).Draw(r, "type")
	case "$regex":
		v = rapid.SampledFrom([]string{"^a", "b", "^ab?", "^(?i)b"}).Draw(r, "pattern")
	case "$mod":
		v = driver.A{int32(2), rapid.Int32Range(0, 1).Draw(r, "remainder")}
	case "$size":
		v = rapid.Int32Range(0, 3).Draw(r, "size")
	case "$not":
		v = genOperators(r)
	case "$elemMatch":
		v = genElement(r)
	default:
		v = genOperand(r)
	}
	return driver.D{{Key: op, Value: v}}
}

func genElement(r *rapid.T) driver.D {
	if rapid.Bool().Draw(r, "object") {
		d := driver.D{}
		for _, k := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x", "y", "x.z"}), 1, 2, rapid.ID[string]).Draw(r, "fields") {
			d = append(d, driver.E{Key: k, Value: genCondition(r)})
		}
		return d
	}
	low := rapid.Int32Range(-1, 2).Draw(r, "low")
	d := driver.D{{Key: rapid.SampledFrom([]string{"$gt", "$gte", "$ne"}).Draw(r, "lower"), Value: low}}
	if rapid.Bool().Draw(r, "both") {
		d = append(d, driver.E{Key: rapid.SampledFrom([]string{"$lt", "$lte", "$nin"}).Draw(r, "upper"), Value: low + rapid.Int32Range(0, 3).Draw(r, "span")})
		if d[1].Key == "$nin" {
			d[1].Value = driver.A{low + 1, nil}
		}
	}
	return d
}
