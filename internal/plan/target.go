package plan

import (
	"fmt"
	"strings"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/catalog"
	"oxbow/internal/query"
	"oxbow/internal/route"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Target is one physical collection that a command goes to.
type Target struct {
	Backend   string
	Namespace backend.Namespace
	Logical   string // the namespace of the collection that it is a partition of, which errors name; "": a plain collection
}

// String returns "backend/database.collection".
func (t Target) String() string { return t.Backend + "/" + t.Namespace.String() }

// Routed is where a read or a filtered write goes, and why.
type Routed struct {
	Targets []Target
	Of      int // partitions of the collection

	route *route.Route  // nil for a plain collection, and for a point
	point bson.Document // the filter that has one; nil: none
	table *route.Table  // of a point
}

// Reason says in words why those targets; empty for a plain collection. It is put together when it is asked for: explain and tests do.
func (r Routed) Reason() string {
	switch {
	case r.route != nil:
		return r.route.Reason()
	case r.point == nil:
		return ""
	}
	filter, err := query.ParseFilter(r.point, query.Env{})
	if err != nil {
		return err.Error()
	}
	told := r.table.Route(filter)
	return told.Reason()
}

// String prints the targets, one a line, below the reason.
func (r Routed) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d: %s\n", len(r.Targets), r.Of, r.Reason())
	for _, t := range r.Targets {
		fmt.Fprintf(&b, "  %s\n", t)
	}
	return b.String()
}

// Source is what a command reads: a collection with a layout, or a plain one on a backend.
type Source struct {
	Database   string
	Name       string
	Collection *catalog.Collection // nil: plain
	Backend    string              // of a plain one
	// ByPartition: an ordered write keeps its order within each partition only. It is the layout's answer when the command began, for the whole of it.
	ByPartition bool
}

// Namespace returns "database.collection".
func (s Source) Namespace() string {
	if s.Collection != nil {
		return s.Collection.Namespace()
	}
	return s.Database + "." + s.Name
}

// route returns the partitions that documents matching filter can be in, ascending by time and slot.
func (s Source) route(filter *query.Filter) (route.Route, Routed) {
	if s.Collection == nil {
		ns := backend.Namespace{Database: s.Database, Collection: s.Name}
		return route.Route{}, Routed{Targets: []Target{{Backend: s.Backend, Namespace: ns}}, Of: 1}
	}
	r := s.Collection.Table.Route(filter)
	routed := Routed{route: &r, Of: len(s.Collection.Table.Partitions), Targets: make([]Target, len(r.Partitions))}
	for at, i := range r.Partitions {
		routed.Targets[at] = s.target(i)
	}
	return r, routed
}

func (s Source) target(partition int) Target {
	p := &s.Collection.Table.Partitions[partition]
	return PartitionTarget(s.Namespace(), p)
}

// PartitionTarget is a partition of the collection with that namespace as a target.
func PartitionTarget(logical string, p *route.Partition) Target {
	return Target{Backend: p.Backend, Namespace: backend.Namespace{Database: p.Database, Collection: p.Collection}, Logical: logical}
}

// Command is a command without the names that differ from target to target.
type Command struct {
	Name string
	Rest []byte // elements behind the first, without $db
}

// For completes the command for one target.
func (c Command) For(ns backend.Namespace) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, len(c.Rest)+len(c.Name)+len(ns.Database)+len(ns.Collection)+32))
	dst = bsoncore.AppendStringElement(dst, c.Name, ns.Collection)
	dst = append(dst, c.Rest...)
	dst = bsoncore.AppendStringElement(dst, "$db", ns.Database)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// With returns the command with one more element.
func (c Command) With(element []byte) Command {
	c.Rest = append(c.Rest[:len(c.Rest):len(c.Rest)], element...)
	return c
}

// String prints the command as Extended JSON without its target.
func (c Command) String() string {
	return c.For(backend.Namespace{Database: "-", Collection: "-"}).String()
}

// appendDocument appends a document field unless it is absent.
func appendDocument(dst []byte, name string, doc bson.Document) []byte {
	if doc == nil {
		return dst
	}
	return bsoncore.AppendDocumentElement(dst, name, doc)
}

// appendValue appends a field unless it is absent.
func appendValue(dst []byte, name string, v bson.Value) []byte {
	if v.Type == 0 {
		return dst
	}
	return bsoncore.AppendValueElement(dst, name, v)
}
