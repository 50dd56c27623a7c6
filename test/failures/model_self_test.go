package failures

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// TestModel: the checker finds what it is there to find.
func TestModel(t *testing.T) {
	k := key{"c", 1}
	op := func(call, end int64, kind opKind, value int, out output) porcupine.Operation {
		return porcupine.Operation{Input: input{k, kind, value}, Call: call, Output: out, Return: end}
	}
	done, not := output{told: true, done: true}, output{told: true}
	value := func(v int) output { return output{told: true, value: v} }
	made := op(0, 1, opInsert, 100, done)
	for _, test := range []struct {
		name string
		ops  []porcupine.Operation
		ok   bool
	}{
		{"counted", []porcupine.Operation{made, op(2, 3, opAdd, 0, done), op(4, 5, opRead, 0, value(101))}, true},
		{"lost", []porcupine.Operation{made, op(2, 3, opAdd, 0, done), op(4, 5, opRead, 0, value(100))}, false},
		{"doubled", []porcupine.Operation{made, op(2, 3, opAdd, 0, done), op(4, 5, opRead, 0, value(102))}, false},
		{"unknown and done", []porcupine.Operation{made, op(2, never, opAdd, 0, output{}), op(4, 5, opRead, 0, value(101))}, true},
		{"unknown and not done", []porcupine.Operation{made, op(2, never, opAdd, 0, output{}), op(4, 5, opRead, 0, value(100))}, true},
		{"unknown and doubled", []porcupine.Operation{made, op(2, never, opAdd, 0, output{}), op(4, 5, opRead, 0, value(102))}, false},
		{"unknown, seen and taken back", []porcupine.Operation{made, op(2, never, opAdd, 0, output{}), op(4, 5, opRead, 0, value(101)), op(6, 7, opRead, 0, value(100))}, false},
		{"inserted twice", []porcupine.Operation{made, op(2, 3, opInsert, 200, done)}, false},
		{"refused at the second", []porcupine.Operation{made, op(2, 3, opInsert, 200, not)}, true},
		{"deleted and there", []porcupine.Operation{made, op(2, 3, opDelete, 0, done), op(4, 5, opRead, 0, value(100))}, false},
		{"deleted, made and counted", []porcupine.Operation{made, op(2, 3, opDelete, 0, done), op(4, 5, opUpsert, 0, done), op(6, 7, opAddReturn, 0, value(2))}, true},
	} {
		wrong, undecided := check(test.ops)
		if ok := len(wrong) == 0; ok != test.ok || undecided != 0 {
			t.Errorf("%s: found right: %v", test.name, ok)
		}
	}
}
