package query

import (
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// Update is a compiled update: operators, a replacement, or a pipeline. It is immutable and safe for concurrent use.
type Update struct {
	tree       *updateNode // of operators, else nil
	positional bool        // the tree has a "$"
	replace    *replacement
	pipeline   updatePipeline
	filter     *Filter
}

// UpdateOptions belong to one update statement.
type UpdateOptions struct {
	Env          Env
	ArrayFilters []bson.Document // arrayFilters, for $[identifier]
	Filter       *Filter         // the statement's filter: the positional $ and the upsert's fields come from it
	Multi        bool            // a replacement is refused with it
}

// ParseUpdate compiles the u of an update statement, or findAndModify's update: a document (operators, or a
// replacement when its first key has no $) or an array (a pipeline). Conflicting paths are ConflictingUpdateOperators (40), unknown
// operators FailedToParse (9), _id is immutable (66) at Apply. The update keeps references to u and to the options' documents.
func ParseUpdate(u bson.Value, opts UpdateOptions) (*Update, error) {
	update := &Update{filter: opts.Filter}
	filters, err := parseArrayFilters(opts.ArrayFilters, opts.Env)
	if err != nil {
		return nil, err
	}
	switch {
	case u.Type == bson.TypeArray:
		if len(filters) > 0 {
			return nil, mongoerr.New(mongoerr.FailedToParse, "arrayFilters may not be specified for pipeline-style updates")
		}
		update.pipeline, err = parseUpdatePipeline(u.Data, opts.Env)
	case u.Type != bson.TypeDocument:
		err = mongoerr.New(mongoerr.FailedToParse, "Update argument must be either an object or an array")
	case isOperators(u.Data):
		update.tree, err = parseOperators(u.Data, filters, opts.Env)
	default:
		update.replace, err = parseReplacement(u.Data, filters, opts)
	}
	if err != nil {
		return nil, err
	}
	update.positional = update.tree != nil && update.tree.hasPositional()
	return update, nil
}

// isOperators reports whether an update document holds operators: its first key begins with a $.
func isOperators(u []byte) bool {
	key, _, _ := bson.First(u)
	return len(key) > 0 && key[0] == '$'
}

// Apply returns doc updated, appended to dst, and whether anything changed; when nothing did, dst is returned as it was. index is what
// Filter.MatchAt gave, for the positional $. A replacement keeps doc's _id. The result never exceeds bson.MaxDocumentSize (17419 otherwise).
// On an error the bytes behind dst are undefined.
func (u *Update) Apply(dst []byte, doc bson.Document, index int) (out []byte, changed bool, err error) {
	start := len(dst)
	out, changed, err = u.apply(dst, doc, index, false)
	switch {
	case err != nil:
		return dst, false, err
	case !changed:
		return out[:start], false, nil
	case len(out)-start > bson.MaxDocumentSize:
		return dst, false, updateTooLarge()
	}
	return out, true, nil
}

func updateTooLarge() error {
	return mongoerr.New(mongoerr.UpdateResultTooLarge, "Resulting document after update is larger than %d", bson.MaxDocumentSize)
}

func (u *Update) apply(dst []byte, doc bson.Document, index int, insert bool) ([]byte, bool, error) {
	switch {
	case u.replace != nil:
		return u.replace.apply(dst, doc, insert)
	case u.pipeline != nil:
		return u.pipeline.apply(dst, doc)
	}
	tree := u.tree
	if u.positional {
		var err error
		if tree, err = tree.resolve(index, ""); err != nil {
			return dst, false, err
		}
	}
	return applyTree(dst, doc, tree, insert)
}

// IsReplacement reports whether u replaces whole documents.
func (u *Update) IsReplacement() bool { return u.replace != nil }
