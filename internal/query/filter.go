package query

import "oxbow/internal/bson"

// Env is what a command brings to everything that is compiled for it.
type Env struct {
	NowMillis int64         // $$NOW: milliseconds since 1970, read once a command by the caller
	Let       bson.Document // the command's let variables, evaluated; nil for none
}

// Filter is a compiled query predicate. The zero Filter matches everything.
type Filter struct {
	root Node
	raw  bson.Document
}

// ParseFilter compiles a filter document. Unknown operators are BadValue, operators that are not built are refused by
// name, regular expressions that don't compile are error 51091.
func ParseFilter(filter bson.Document, env Env) (*Filter, error) { panic("unbuilt") }

// Match reports whether doc satisfies the filter. Only $expr can fail.
func (f *Filter) Match(doc bson.Document) (bool, error) { panic("unbuilt") }

// MatchAt is Match that also reports the index of the array element that the positional operator $ stands for: the element that
// the last array-traversing predicate matched, or -1.
func (f *Filter) MatchAt(doc bson.Document) (ok bool, index int, err error) { panic("unbuilt") }

// Root returns the predicate's tree, for those who derive index bounds or routes from it.
func (f *Filter) Root() Node { return f.root }

// Raw returns the filter as it was given.
func (f *Filter) Raw() bson.Document { return f.raw }

// Node is one predicate of a filter. The concrete types are below; a type switch that meets one it does not know must
// take it as "any document may match".
type Node interface {
	match(s *state, doc bson.Document) (bool, error)
}

// state is what one evaluation carries.
type state struct {
	index int // see MatchAt
}

type (
	// And matches when all of Of do; an And of nothing matches everything.
	And struct{ Of []Node }
	// Or matches when one of Of does.
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
	// Regex is {path: /pattern/}; Prefix is the literal text that every match starts with, "" if none is known.
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
	// Bits is {path: {$bitsAllSet: …}} and its three relations.
	Bits struct {
		Path bson.Path
		Op   string // the operator's name
		Mask []byte // little-endian bit mask
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

// matcher is a compiled regular expression.
type matcher interface{ MatchString(string) bool }
