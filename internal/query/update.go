package query

import "oxbow/internal/bson"

// Update is a compiled update: operators, a replacement, or a pipeline.
type Update struct{}

// UpdateOptions belong to one update statement.
type UpdateOptions struct {
	Env          Env
	ArrayFilters []bson.Document // arrayFilters, for $[identifier]
	Filter       *Filter         // the statement's filter: the positional $ and the upsert's fields come from it
	Multi        bool            // a replacement is refused with it
}

// ParseUpdate compiles the u of an update statement, or findAndModify's update: a document (operators, or a
// replacement when its first key has no $) or an array (a pipeline). Conflicting paths are ConflictingUpdateOperators (40), unknown
// operators FailedToParse (9), _id is immutable (66) at Apply.
func ParseUpdate(u bson.Value, opts UpdateOptions) (*Update, error) { panic("unbuilt") }

// Apply returns doc updated, appended to dst, and whether anything changed; when nothing did, dst is returned as it was. index is what
// Filter.MatchAt gave, for the positional $. A replacement keeps doc's _id. The result never exceeds bson.MaxDocumentSize (17419 otherwise).
func (u *Update) Apply(dst []byte, doc bson.Document, index int) (out []byte, changed bool, err error) {
	panic("unbuilt")
}

// Upsert appends the document that an upsert inserts: the filter's equalities, the operators with $setOnInsert, and an
// _id: the one that results, else newID. _id comes first.
func (u *Update) Upsert(dst []byte, newID [12]byte) ([]byte, error) { panic("unbuilt") }

// Touches reports whether the update can change the value at path: an operator on it, on a prefix of it or below it, a replacement, a pipeline stage that may.
// Constant is the value that every document will have there afterwards, if that is known (a $set of it, a replacement; ok false if unknown,
// v with Type 0 if it will be missing).
func (u *Update) Touches(path bson.Path) (touches bool, v bson.Value, constant bool) {
	panic("unbuilt")
}

// IsReplacement reports whether u replaces whole documents.
func (u *Update) IsReplacement() bool { panic("unbuilt") }
