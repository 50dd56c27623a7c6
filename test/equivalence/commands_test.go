package equivalence

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"
)

// comparison says what of two replies must be equal.
type comparison int

const (
	exact    comparison = iota // everything
	inOrder                    // a cursor's documents, in their order
	multiset                   // a cursor's documents, in any order
	byValue                    // as multiset, equal numbers of different types taken for one: which of them a group shows, nothing decides
	asSet                      // distinct's values, as byValue
	codeOnly                   // of the error, or that there is none
)

// command is a generated command on the collection c.
type command struct {
	body    bson.D
	compare comparison
	before  bson.D // a command that goes first; nil: none
}

// pick draws one of several generators' values.
func pick[T any](t *rapid.T, label string, of ...func() T) T {
	return of[rapid.IntRange(0, len(of)-1).Draw(t, label)]()
}

func d(pairs ...any) bson.D {
	var doc bson.D
	for i := 0; i < len(pairs); i += 2 {
		doc = append(doc, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return doc
}

const maxID = 30

func anID(t *rapid.T) int { return rapid.IntRange(0, maxID).Draw(t, "_id") }

// number draws numbers of all types, of which many are equal.
func number(t *rapid.T) any {
	n := rapid.IntRange(-1, 3).Draw(t, "n")
	return pick(t, "number", func() any { return int32(n) }, func() any { return int64(n) }, func() any { return float64(n) },
		func() any { return float64(n) + 0.5 }, func() any {
			v, err := bson.ParseDecimal128(fmt.Sprint(n))
			if err != nil {
				panic(err)
			}
			return v
		})
}

// scalar draws small values.
func scalar(t *rapid.T) any {
	return pick(t, "scalar", func() any { return number(t) }, func() any { return number(t) },
		func() any { return rapid.SampledFrom([]string{"", "x", "xy", "y"}).Draw(t, "s") },
		func() any { return nil }, func() any { return rapid.Bool().Draw(t, "b") },
		func() any { return day(rapid.IntRange(0, 3).Draw(t, "day"), 0) })
}

// value draws scalars, arrays and documents.
func value(t *rapid.T, depth int) any {
	if depth == 0 {
		return scalar(t)
	}
	return pick(t, "value", func() any { return scalar(t) }, func() any { return scalar(t) },
		func() any {
			var a bson.A = bson.A{}
			for range rapid.IntRange(0, 3).Draw(t, "length") {
				a = append(a, value(t, depth-1))
			}
			return a
		},
		func() any {
			return pick(t, "document", func() any { return d("c", value(t, depth-1)) },
				func() any { return d("c", value(t, depth-1), "d", scalar(t)) }, func() any { return bson.D{} })
		})
}

// document draws a document of an _id: n is a number where it is there, l an array of numbers, u mostly unique, the rest anything.
func document(t *rapid.T, id int) bson.D {
	doc := placed(id)
	if rapid.Bool().Draw(t, "has n") {
		doc = append(doc, bson.E{Key: "n", Value: number(t)})
	}
	if rapid.Bool().Draw(t, "has l") {
		var l bson.A = bson.A{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			l = append(l, number(t))
		}
		doc = append(doc, bson.E{Key: "l", Value: l})
	}
	doc = append(doc, bson.E{Key: "u", Value: rapid.IntRange(0, 9).Draw(t, "u")})
	for _, name := range []string{"a", "b"} {
		if rapid.Bool().Draw(t, "has "+name) {
			doc = append(doc, bson.E{Key: name, Value: value(t, 2)})
		}
	}
	return doc
}

// condition draws a condition on one field.
func condition(t *rapid.T) bson.E {
	path := rapid.SampledFrom([]string{"_id", "t", "t", "h", "h", "a", "a", "b", "b.c", "b.c", "a.c", "a.0", "n", "l"}).Draw(t, "path")
	operand := func() any {
		switch path {
		case "_id":
			return pick(t, "operand", func() any { return int32(anID(t)) }, func() any { return float64(anID(t)) })
		case "t":
			return day(rapid.IntRange(-1, 4).Draw(t, "day"), rapid.SampledFrom([]int{0, 11, 22}).Draw(t, "hour"))
		case "h":
			return pick(t, "operand", func() any { return value(t, 1) }, func() any { return rapid.SampledFrom([]any{int32(0), int64(1), "x", nil, 2.5}).Draw(t, "h") })
		}
		return value(t, 1)
	}
	list := func() bson.A {
		var a bson.A = bson.A{}
		for range rapid.IntRange(0, 3).Draw(t, "operands") {
			a = append(a, operand())
		}
		return a
	}
	var simple func() any
	simple = func() any {
		return pick(t, "operator",
			func() any {
				return d(rapid.SampledFrom([]string{"$gt", "$gte", "$lt", "$lte", "$ne", "$eq"}).Draw(t, "op"), operand())
			},
			func() any { return d("$gte", operand(), "$lt", operand()) },
			func() any { return d(rapid.SampledFrom([]string{"$in", "$nin"}).Draw(t, "op"), list()) },
			func() any { return d("$exists", rapid.Bool().Draw(t, "exists")) },
			func() any {
				return d("$type", rapid.SampledFrom([]any{"number", "string", "null", "array", "object", "date", 16}).Draw(t, "type"))
			},
			func() any { return d("$size", rapid.IntRange(0, 2).Draw(t, "size")) },
			func() any { return d("$all", list()) },
			func() any { return d("$elemMatch", d("$gte", scalar(t))) },
			func() any { return d("$elemMatch", d("c", scalar(t))) },
			func() any { return d("$mod", bson.A{2, rapid.IntRange(0, 1).Draw(t, "remainder")}) },
			func() any { return d("$not", simple()) },
			func() any { return d("$regex", rapid.SampledFrom([]string{"^x", "y", "^$"}).Draw(t, "regex")) })
	}
	if rapid.IntRange(0, 2).Draw(t, "equality") == 0 {
		return bson.E{Key: path, Value: operand()}
	}
	return bson.E{Key: path, Value: simple()}
}

// filter draws a filter.
func filter(t *rapid.T, depth int) bson.D {
	f := bson.D{}
	for range rapid.IntRange(0, 2).Draw(t, "conditions") {
		f = withCondition(f, condition(t))
	}
	if depth > 0 && rapid.IntRange(0, 3).Draw(t, "logic") == 0 {
		var of bson.A
		for range rapid.IntRange(1, 3).Draw(t, "branches") {
			of = append(of, filter(t, depth-1))
		}
		f = append(f, bson.E{Key: rapid.SampledFrom([]string{"$or", "$and", "$nor"}).Draw(t, "op"), Value: of})
	}
	if depth > 0 && rapid.IntRange(0, 9).Draw(t, "expr") == 0 {
		f = append(f, bson.E{Key: "$expr", Value: pick(t, "expression",
			func() any { return d("$gt", bson.A{"$n", number(t)}) },
			func() any { return d("$eq", bson.A{"$h", scalar(t)}) },
			func() any { return d("$lte", bson.A{"$t", day(rapid.IntRange(0, 3).Draw(t, "day"), 11)}) })})
	}
	return f
}

// withCondition adds a condition, but for a field that has one: a document has no key twice.
func withCondition(f bson.D, e bson.E) bson.D {
	for _, have := range f {
		if have.Key == e.Key {
			return f
		}
	}
	return append(f, e)
}

// order draws a sort that decides every order: the _id comes last.
func order(t *rapid.T) bson.D {
	s := bson.D{}
	for range rapid.IntRange(0, 2).Draw(t, "sort fields") {
		s = withCondition(s, bson.E{Key: rapid.SampledFrom([]string{"a", "b.c", "n", "h", "t", "l"}).Draw(t, "sort field"), Value: direction(t)})
	}
	return append(s, bson.E{Key: "_id", Value: direction(t)})
}

func direction(t *rapid.T) int { return rapid.SampledFrom([]int{1, -1}).Draw(t, "direction") }
