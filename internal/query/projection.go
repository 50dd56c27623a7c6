package query

import "oxbow/internal/bson"

// Projection is a compiled projection: find's, or that of $project, $addFields or $unset.
type Projection struct{}

// ParseProjection compiles find's projection: inclusion, exclusion, computed fields, $slice, $elemMatch, $meta refused, and the positional "a.$", for
// which the filter is needed. An empty document keeps documents whole.
func ParseProjection(spec bson.Document, filter *Filter, env Env) (*Projection, error) {
	panic("unbuilt")
}

// Whole reports whether the projection leaves every document as it is.
func (p *Projection) Whole() bool { panic("unbuilt") }

// Apply appends doc, projected, to dst and returns the extended slice. Field order is MongoDB's: the document's for
// inclusions and exclusions, then computed fields in the order of the specification.
func (p *Projection) Apply(dst []byte, doc bson.Document) ([]byte, error) { panic("unbuilt") }

// Fields returns the top-level fields that the projection can need, and false when that is all of them.
func (p *Projection) Fields() ([]string, bool) { panic("unbuilt") }

// parseStageProjection compiles the specification of a $project stage: inclusion, exclusion and computed fields; find's $slice by number,
// $elemMatch and the positional "a.$" are refused.
func parseStageProjection(spec bson.Document, env Env) (*Projection, error) { panic("unbuilt") }

// parseAddFields compiles the specification of $addFields or $set (stage is the name for errors): computed values at dotted paths, everything else kept.
// A path that meets an array is set in each element; what is no document on the way is replaced by one.
func parseAddFields(stage string, spec bson.Document, env Env) (*Projection, error) { panic("unbuilt") }

// parseUnset compiles the argument of a $unset stage: a path or an array of paths.
func parseUnset(arg bson.Value, env Env) (*Projection, error) { panic("unbuilt") }
