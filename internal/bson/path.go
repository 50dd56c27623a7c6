package bson

// Path is a dotted field path, split once.
type Path struct {
	text  string
	parts []string
	index []int // for a part that is a decimal number without leading zeros its value, else -1
}

// ParsePath splits a dotted path.
func ParsePath(text string) Path { panic("unbuilt") }

// String returns the path as it was written.
func (p Path) String() string { return p.text }

// Parts returns the path's components.
func (p Path) Parts() []string { return p.parts }

// Walk calls visit for each value that the path reaches in doc, as MongoDB's queries see it: where the path meets an array it goes
// through the elements that are documents, and where its next part is a number also into the element of that index. The last value is given
// as it is: an array at the end of the path is visited once, whole, with expanded false; when expand is set, also each of its elements, with
// expanded true, before it. Where a branch ends early visit is called with ok false, once per branch: the field is missing
// there (inside an array only for document elements). Elements of arrays that are no documents are passed over. index is the position in the
// outermost array the path went through, or -1. Walk stops when visit returns false. It does not allocate.
func (p Path) Walk(doc []byte, expand bool, visit func(v Value, ok, expanded bool, index int) bool) {
	panic("unbuilt")
}

// Lookup follows the path through documents only, as a shard key does: ok is false where a part is missing;
// array is true where a part of the path or its value is an array.
func (p Path) Lookup(doc []byte) (v Value, ok, array bool) { panic("unbuilt") }
