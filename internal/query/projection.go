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
