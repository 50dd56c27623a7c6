package equivalence

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"oxbow/internal/backend"
	"oxbow/test/inprocess"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"
)

// TestEquivalence runs random commands on all layouts and compares every reply with that of the plain collection.
func TestEquivalence(t *testing.T) {
	s := &system{inprocess.Open(t, configuration(inprocess.Serve(t)))}
	outcomes := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		for _, l := range layouts {
			if r := s.run(t, l, d("dropDatabase", 1)); r.code != 0 {
				t.Fatalf("drop %s: %v", l.name, r.doc)
			}
		}
		for range rapid.IntRange(10, 60).Draw(t, "steps") {
			if rapid.IntRange(0, 14).Draw(t, "refusal") == 0 {
				s.refuse(t)
				continue
			}
			s.step(t, commands(t), outcomes)
		}
		s.step(t, command{body: d("find", "c", "sort", d("_id", 1)), compare: inOrder}, outcomes)
		s.step(t, command{body: d("find", "d", "sort", d("_id", 1)), compare: inOrder}, outcomes)
		s.step(t, command{body: d("count", "c"), compare: exact}, outcomes)
		s.validate(t)
	})
	t.Logf("replies: %v", outcomes)
	for _, name := range []string{"insert ok", "update ok", "update failed", "delete ok", "findAndModify ok", "find ok", "aggregate ok", "createIndexes ok"} {
		if outcomes[name] == 0 {
			t.Errorf("no reply was %q: the test shows too little; there were %v", name, slices.Sorted(maps.Keys(outcomes)))
		}
	}
}

// result is a command's reply; of a cursor, all its documents.
type result struct {
	code int32 // of the error; 0: none
	doc  bson.D
	docs []any
}

// run runs a command on a layout and reads its cursor to the end.
func (s *system) run(t *rapid.T, l layout, body bson.D) result {
	t.Helper()
	r := s.send(t, l, body)
	cursor, isCursor := field(r.doc, "cursor").(bson.D)
	if !isCursor {
		return r
	}
	r.docs = field(cursor, "firstBatch").(bson.A)
	for id := field(cursor, "id").(int64); id != 0; {
		next := s.send(t, l, d("getMore", id, "collection", body[0].Value, "batchSize", 3))
		if next.code != 0 {
			return next
		}
		cursor = field(next.doc, "cursor").(bson.D)
		r.docs = append(r.docs, field(cursor, "nextBatch").(bson.A)...)
		id = field(cursor, "id").(int64)
	}
	return r
}

func (s *system) send(t *rapid.T, l layout, body bson.D) result {
	t.Helper()
	raw, err := bson.Marshal(append(slices.Clone(body), bson.E{Key: "$db", Value: l.name}))
	if err != nil {
		t.Fatal(err)
	}
	reply, err := s.gateway.Run(context.Background(), &backend.Request{Body: raw})
	if err != nil {
		t.Fatal(err)
	}
	var r result
	if err := bson.Unmarshal(reply, &r.doc); err != nil {
		t.Fatal(err)
	}
	r.code, _ = field(r.doc, "code").(int32)
	return r
}

func field(doc bson.D, key string) any {
	for _, e := range doc {
		if e.Key == key {
			return e.Value
		}
	}
	return nil
}

// step runs a command on all layouts.
func (s *system) step(t *rapid.T, c command, outcomes map[string]int) {
	t.Helper()
	var want string
	for i, l := range layouts {
		if c.before != nil {
			s.run(t, l, c.before)
		}
		r := s.run(t, l, c.body)
		got := c.text(r, l)
		if i == 0 {
			want = got
			outcomes[c.body[0].Key+outcome(r)]++
			continue
		}
		if got != want {
			t.Fatalf("%s\n%s answers\n%s\nplain answers\n%s", text(c.body, true), l.name, got, want)
		}
	}
}

func outcome(r result) string {
	if r.code != 0 || field(r.doc, "writeErrors") != nil {
		return " failed"
	}
	return " ok"
}

// text is what of a reply is compared.
func (c command) text(r result, l layout) string {
	if r.code != 0 {
		return fmt.Sprintf("error %d", r.code)
	}
	switch c.compare {
	case codeOnly:
		return "ok"
	case exact:
		return strings.ReplaceAll(text(r.doc, true), l.name+".", "<database>.")
	case asSet:
		values, _ := field(r.doc, "values").(bson.A)
		return strings.Join(sorted(texts(values, false)), "\n")
	case inOrder:
		return strings.Join(texts(r.docs, true), "\n")
	case byValue:
		return strings.Join(sorted(texts(r.docs, false)), "\n")
	}
	return strings.Join(sorted(texts(r.docs, true)), "\n")
}

func texts(values []any, types bool) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = text(v, types)
	}
	return out
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

// text writes a value out; without types, equal numbers are written alike.
func text(v any, types bool) string {
	if types {
		b, err := bson.MarshalExtJSON(d("v", v), true, false)
		if err != nil {
			return err.Error()
		}
		return string(b[len(`{"v":`) : len(b)-1])
	}
	switch v := v.(type) {
	case bson.D:
		var parts []string
		for _, e := range v {
			parts = append(parts, fmt.Sprintf("%q:%s", e.Key, text(e.Value, false)))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case bson.A:
		return "[" + strings.Join(texts(v, false), ",") + "]"
	case int32, int64, float64, bson.Decimal128:
		return "number " + exactly(v)
	}
	return text(v, true)
}

// exactly writes equal numbers of all types in one way.
func exactly(number any) string {
	r := new(big.Rat)
	switch v := number.(type) {
	case float64:
		if math.IsNaN(v) {
			return "NaN"
		}
		if math.IsInf(v, 0) {
			return strings.TrimPrefix(fmt.Sprintf("%vinity", v), "+")
		}
		r.SetFloat64(v)
	case bson.Decimal128:
		digits, exponent, err := v.BigInt()
		if err != nil { // it is infinite or no number
			return v.String()
		}
		power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exponent, -exponent))), nil)
		if r.SetInt(digits); exponent < 0 {
			r.Quo(r, new(big.Rat).SetInt(power))
		} else {
			r.Mul(r, new(big.Rat).SetInt(power))
		}
	default:
		fmt.Sscan(fmt.Sprint(v), r)
	}
	return r.RatString()
}

func TestEqualNumbersAreWrittenAlike(t *testing.T) {
	decimal := func(text string) bson.Decimal128 {
		d, err := bson.ParseDecimal128(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for want, numbers := range map[string][]any{
		"-2":        {int32(-2), int64(-2), -2.0, decimal("-2"), decimal("-2.00000000000000"), decimal("-20E-1")},
		"2000":      {int64(2000), decimal("2E3")},
		"3/2":       {1.5, decimal("1.50")},
		"0":         {int32(0), math.Copysign(0, -1), decimal("-0.00")},
		"NaN":       {math.NaN(), decimal("NaN")},
		"Infinity":  {math.Inf(1), decimal("Infinity")},
		"-Infinity": {math.Inf(-1), decimal("-Infinity")},
	} {
		for _, n := range numbers {
			if got := exactly(n); got != want {
				t.Errorf("%T %v: %s, not %s", n, n, got, want)
			}
		}
	}
}

// refuse runs a command that only some layouts refuse, on those: it must fail with its code and leave everything as it was. The others don't run
// it, since it would part them.
func (s *system) refuse(t *rapid.T) {
	r := refusals[rapid.IntRange(0, len(refusals)-1).Draw(t, "which")]
	body := r.command(t)
	for _, l := range layouts {
		if !r.by(l) {
			continue
		}
		before := s.run(t, l, d("find", "c", "sort", d("_id", 1)))
		got := s.run(t, l, body)
		if code := got.errorCode(); code != r.code {
			t.Fatalf("%s: %s answers %s, not error %d", r.why, l.name, text(got.doc, true), r.code)
		}
		if after := s.run(t, l, d("find", "c", "sort", d("_id", 1))); text(bson.A(before.docs), true) != text(bson.A(after.docs), true) {
			t.Fatalf("%s: %s changed documents", r.why, l.name)
		}
	}
}

// errorCode is a reply's error, or that of its first statement.
func (r result) errorCode() int32 {
	if errs, ok := field(r.doc, "writeErrors").(bson.A); ok && len(errs) > 0 {
		code, _ := field(errs[0].(bson.D), "code").(int32)
		return code
	}
	return r.code
}

// validate has every layout check its indexes against its documents.
func (s *system) validate(t *rapid.T) {
	for _, l := range layouts {
		r := s.run(t, l, d("validate", "c"))
		if missing := int32(26); r.code == missing {
			continue
		}
		if valid, _ := field(r.doc, "valid").(bool); !valid {
			t.Fatal(errors.New(l.name + " is not valid: " + text(r.doc, true)))
		}
	}
}
