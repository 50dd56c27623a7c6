package bson

// MaxDepth is the deepest nesting that MongoDB takes (https://www.mongodb.com/docs/manual/reference/limits/).
const MaxDepth = 100

// MaxDocumentSize is the largest document a user can store, in bytes; MaxInternalSize allows for the command around it.
const (
	MaxDocumentSize = 16 << 20
	MaxInternalSize = MaxDocumentSize + 16<<10
)

// Validate checks that doc is exactly one well-formed document: lengths that add up, known types, terminated keys and
// strings, booleans of 0 or 1, code with scope that fits, nesting at most maxDepth. Strings need not be UTF-8, as in MongoDB. It does
// not look at key names or array indexes. It allocates nothing unless it returns an error, which names the offset.
func Validate(doc []byte, maxDepth int) error { panic("unbuilt") }
