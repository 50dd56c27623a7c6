package query

import "oxbow/internal/bson"

// Env is what a command brings to everything that is compiled for it.
type Env struct {
	NowMillis int64         // $$NOW: milliseconds since 1970, read once a command by the caller
	Let       bson.Document // the command's let variables, evaluated (see EvalLet); nil for none

	unbound []string // variables whose values are not known yet ($lookup compiles its pipeline once without them)
}

// Filter is a compiled query predicate. The zero Filter matches everything. It keeps the bytes it was parsed from.
type Filter struct {
	root Node
	raw  bson.Document
}

// Root returns the predicate's tree, for those who derive index bounds or routes from it.
func (f *Filter) Root() Node { return f.root }

// Raw returns the filter as it was given.
func (f *Filter) Raw() bson.Document { return f.raw }

// Node is one predicate of a filter. The concrete types are below; a type switch that meets one it does not know must
// take it as "any document may match".
type Node interface {
	// match applies the predicate to a document. index is the element that the positional $ stands for, or -1.
	match(doc []byte) (ok bool, index int, err error)
	// test applies it to one value, as an element of an array under $elemMatch; Type 0 is a missing value.
	test(v bson.Value) (bool, error)
}

type (
	// And matches when all of Of do; an And of nothing matches everything.
	And struct{ Of []Node }
	// Or matches when one of Of does; an Or of nothing matches nothing.
	Or struct{ Of []Node }
	// Nor matches when none of Of does; $not of a field's predicates is a Nor of their And.
	Nor struct{ Of []Node }

	// Compare is {path: {op: value}} for the six comparisons; $eq and $ne of a value of any type, the others within the value's class
	// (bson.Class). $ne is a Nor of an $eq: it does not appear here.
	Compare struct {
		Path  bson.Path
		Op    Op // Eq, Lt, Lte, Gt, Gte
		Value bson.Value
	}
	// In is {path: {$in: [...]}}: Values sorted by bson.Compare without repeats, Regexes apart.
	In struct {
		Path    bson.Path
		Values  []bson.Value
		Regexes []*Regex
	}
	// Exists is {path: {$exists: Want}}.
	Exists struct {
		Path bson.Path
		Want bool
	}
	// Type is {path: {$type: …}}.
	Type struct {
		Path  bson.Path
		Types []bson.Type // "number" is spelt out as its four types
	}
	// Regex is {path: /pattern/}; Prefix is the literal text that every match starts with, "" if none is known. ParseFilter
	// makes it, or NewRegex.
	Regex struct {
		Path    bson.Path
		Pattern string
		Options string
		Prefix  string
		re      matcher
	}
	// Mod is {path: {$mod: [Divisor, Remainder]}}.
	Mod struct {
		Path               bson.Path
		Divisor, Remainder int64
	}
	// Size is {path: {$size: N}}.
	Size struct {
		Path bson.Path
		N    int64
	}
	// ElemMatch is {path: {$elemMatch: …}}: with Object, Of applies to elements that are documents; otherwise Of holds
	// predicates with an empty Path that apply to the element itself.
	ElemMatch struct {
		Path   bson.Path
		Object bool
		Of     Node
	}
	// Expr is {$expr: expression}.
	Expr struct{ Expression *Expression }
	// Bits is {path: {$bitsAllSet: …}} and its three relations. In numbers, bit 63 and all beyond it are the sign.
	Bits struct {
		Path bson.Path
		Op   string   // the operator's name
		Mask []byte   // the bits asked for, little-endian
		Far  []uint32 // further bits asked for, by position
	}
)

// Op is a comparison.
type Op uint8

// The comparisons of Compare.
const (
	Eq Op = iota
	Lt
	Lte
	Gt
	Gte
)
