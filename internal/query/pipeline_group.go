package query

import (
	"strings"

	"oxbow/internal/bson"
	"oxbow/internal/memory"
	"oxbow/internal/mongoerr"
)

// groupStage is $group. Its work is in two halves that know nothing of each other: a groupTable that takes documents, and the reading of its
// groups. A push-down to partitions will put a table of accumulators' states between the two.
type groupStage struct {
	id       *Expression
	fields   []groupField
	maxBytes int64
	memory   *memory.Budget
}

// groupField is one computed field of the groups.
type groupField struct {
	name string
	of   *Expression
	make func() accumulator
}

func parseGroup(arg bson.Value, opts *PipelineOptions) (stage, error) {
	if arg.Type != bson.TypeDocument {
		return nil, mongoerr.New(15947, "a group's fields must be specified in an object")
	}
	g := &groupStage{maxBytes: opts.MaxBytes, memory: opts.Memory}
	it := bson.Elements(arg.Data)
	for it.Next() {
		name, v := string(it.Key()), it.Value()
		if name == "_id" {
			if g.id != nil {
				return nil, mongoerr.New(15948, "a group's _id may only be specified once")
			}
			var err error
			if g.id, err = parseGroupID(v, opts.Env); err != nil {
				return nil, err
			}
			continue
		}
		f, err := parseGroupField(name, v, opts.Env)
		if err != nil {
			return nil, err
		}
		for _, have := range g.fields {
			if have.name == name {
				return nil, mongoerr.New(mongoerr.DuplicateFieldName, "duplicate field name specified in object literal: %s", show(arg))
			}
		}
		g.fields = append(g.fields, f)
	}
	if g.id == nil {
		return nil, mongoerr.New(15955, "a group specification must include an _id")
	}
	return g, nil
}

func parseGroupID(v bson.Value, env Env) (*Expression, error) {
	if v.Type == bson.TypeDocument {
		if key, _, _ := bson.First(v.Data); !strings.HasPrefix(key, "$") {
			it := bson.Elements(v.Data)
			for it.Next() {
				if t := it.Value().Type; bson.IsNumber(t) || t == bson.TypeBoolean {
					return nil, mongoerr.New(17390, "$group does not support inclusion-style expressions")
				}
			}
		}
	}
	return ParseExpression(v, env)
}

func parseGroupField(name string, v bson.Value, env Env) (f groupField, err error) {
	switch {
	case strings.Contains(name, "."):
		return f, mongoerr.New(40235, "The field name '%s' cannot contain '.'", name)
	case strings.HasPrefix(name, "$"):
		return f, mongoerr.New(40236, "The field name '%s' cannot be an operator name", name)
	case name == "":
		return f, checkFieldPath(name)
	case v.Type != bson.TypeDocument:
		return f, mongoerr.New(40234, "The field '%s' must be an accumulator object", name)
	case countElements(v.Data) != 1:
		return f, mongoerr.New(40238, "The field '%s' must specify one accumulator", name)
	}
	operator, arg, _ := bson.First(v.Data)
	f = groupField{name: name, make: accumulatorNamed(operator)}
	if f.make == nil {
		if !strings.HasPrefix(operator, "$") {
			return f, mongoerr.New(40234, "The field '%s' must be an accumulator object", name)
		}
		return f, mongoerr.New(mongoerr.GroupUnknownOperator, "unknown group operator '%s'", operator)
	}
	if operator == "$count" {
		if arg.Type != bson.TypeDocument || countElements(arg.Data) != 0 {
			return f, mongoerr.New(mongoerr.TypeMismatch, "$count takes no arguments, i.e. $count:{}")
		}
		var s Scratch
		arg = s.int32(1)
	}
	if arg.Type == bson.TypeArray {
		return f, mongoerr.New(40237, "The %s accumulator is a unary operator", operator)
	}
	f.of, err = ParseExpression(arg, env)
	return f, err
}

func (*groupStage) name() string { return "$group" }

func (g *groupStage) run(in Documents) Documents {
	out := &gathered{in: in, memory: g.memory.Account(memory.Queries)}
	table := groupTable{spec: g, index: make(map[string]int), memory: &out.memory}
	out.add, out.next = table.add, table.next
	return out
}

// groupTable holds the groups met so far, in the order of their first documents.
type groupTable struct {
	spec   *groupStage
	index  map[string]int // by the key bytes of their _id, so that 1 and 1.0 are one group
	groups []group
	bytes  int64
	memory *memory.Account
	key    []byte
	out    []byte
	read   int
}

// group is one group: its _id as it came first, and a state for each field.
type group struct {
	id     bson.Value
	states []accumulator
}

// groupSize is what a group costs beside its _id and its states, in bytes.
const groupSize = 128

func (t *groupTable) add(s *Scratch, doc bson.Document) error {
	id, err := t.spec.id.Eval(doc, s)
	if err != nil {
		return err
	}
	id = orNull(id)
	t.key = bson.AppendKey(t.key[:0], id, false)
	i, ok := t.index[string(t.key)]
	if !ok {
		i = t.insert(id)
	}
	g := &t.groups[i]
	for k := range t.spec.fields {
		v, err := t.spec.fields[k].of.Eval(doc, s)
		if err != nil {
			return err
		}
		grown, err := g.states[k].add(v)
		if err != nil {
			return err
		}
		t.bytes += int64(grown)
	}
	if t.bytes > t.spec.maxBytes {
		return mongoerr.New(mongoerr.QueryExceededMemoryNoDiskUse, "Exceeded memory limit for $group, but didn't allow external sort. Pass allowDiskUse:true to opt in.")
	}
	return t.memory.Set(t.bytes)
}

func (t *groupTable) insert(id bson.Value) int {
	g := group{
		id:     bson.Value{Type: id.Type, Data: append([]byte(nil), id.Data...)},
		states: make([]accumulator, len(t.spec.fields)),
	}
	for k := range t.spec.fields {
		g.states[k] = t.spec.fields[k].make()
	}
	t.groups = append(t.groups, g)
	t.index[string(t.key)] = len(t.groups) - 1
	t.bytes += int64(groupSize + len(t.key) + len(id.Data) + accumulatorSize*len(g.states))
	return len(t.groups) - 1
}

// next gives the groups' documents, one after another.
func (t *groupTable) next(s *Scratch) (bson.Document, error) {
	if t.read == len(t.groups) {
		return nil, nil
	}
	g := &t.groups[t.read]
	s.reset(nil, 0)
	t.out = appendField(begin(t.out[:0]), "_id", g.id)
	for k, state := range g.states {
		v, err := state.result(s)
		if err != nil {
			return nil, err
		}
		t.out = appendField(t.out, t.spec.fields[k].name, v)
	}
	t.out = finish(t.out, 0)
	*g = group{}
	t.read++
	return t.out, nil
}
