package failures

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// key names one document.
type key struct {
	collection string
	id         int
}

// absent is the state of a document that is not there; any other state is the value of its counter.
const absent = math.MinInt

type opKind int

const (
	opInsert    opKind = iota // with a value
	opAdd                     // adds one where the document is there
	opUpsert                  // adds one, or makes the document with 1
	opAddReturn               // adds one and tells the value after it
	opDelete
	opRead
)

func (k opKind) String() string {
	return [...]string{"insert", "add", "upsert", "add and return", "delete", "read"}[k]
}

// input is what one operation was to do with one document.
type input struct {
	key   key
	kind  opKind
	value int // of an insert
}

// output is what the client was told.
type output struct {
	told  bool // false: that it succeeded and no more, or nothing
	done  bool // it found the document; an insert: it found none
	value int  // of a read, and after an add: absent where there is none
}

// model is a document as one server without failures would have it.
var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := map[key][]porcupine.Operation{}
		for _, op := range history {
			k := op.Input.(input).key
			by[k] = append(by[k], op)
		}
		var out [][]porcupine.Operation
		for _, ops := range by {
			out = append(out, ops)
		}
		return out
	},
	Init: func() any { return absent },
	Step: func(state, in, out any) (bool, any) { return step(state.(int), in.(input), out.(output)) },
	DescribeOperation: func(in, out any) string {
		return fmt.Sprintf("%v %v", in, out)
	},
}

// step says whether an operation on a document in a state can have told that, and what becomes of the document.
func step(state int, in input, out output) (bool, int) {
	there := state != absent
	var done bool
	after := state
	switch in.kind {
	case opInsert:
		if done = !there; done {
			after = in.value
		}
	case opAdd, opAddReturn:
		if done = there; done {
			after++
		}
	case opUpsert:
		done = true
		if after = 1; there {
			after = state + 1
		}
	case opDelete:
		done, after = there, absent
	case opRead:
		done = there
	}
	switch {
	case !out.told:
		return true, after
	case in.kind == opRead || in.kind == opAddReturn:
		return out.value == after, after
	}
	return out.done == done, after
}

// never is when an operation ends of which nobody knows whether it was done: behind everything, so that it can have been done at any time or not at all.
const never = math.MaxInt64

// checkTime is enough for any history here; beyond it, it counts as undecided.
const checkTime = 20 * time.Second

// check looks for an order of a history's operations that explains all that was told, and returns the documents for which there is none.
func check(history []porcupine.Operation) (wrong []key, undecided int) {
	for _, ops := range model.Partition(history) {
		one := model
		one.Partition = nil
		switch porcupine.CheckOperationsTimeout(one, ops, checkTime) {
		case porcupine.Illegal:
			wrong = append(wrong, ops[0].Input.(input).key)
		case porcupine.Unknown:
			undecided++
		}
	}
	return wrong, undecided
}
