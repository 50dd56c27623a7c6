package plan

import (
	"fmt"
	"strings"

	"oxbow/internal/bson"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// String prints the plan of a find: the route, the groups, what the gateway does itself.
func (p *Find) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", p.Source.Namespace(), p.Routed)
	fmt.Fprintf(&b, "send %s\n", p.Command)
	switch {
	case p.Sort != nil && len(p.Routed.Targets) > 1:
		fmt.Fprintf(&b, "merge by sort, in %d groups\n", len(p.Groups))
	case len(p.Groups) > 1:
		fmt.Fprintf(&b, "one after the other\n")
	}
	if p.Skip > 0 {
		fmt.Fprintf(&b, "skip %d\n", p.Skip)
	}
	if p.Limit > 0 {
		fmt.Fprintf(&b, "limit %d\n", p.Limit)
	}
	if p.Projection != nil {
		b.WriteString("project at the gateway\n")
	}
	return b.String()
}

// String prints the plan of a write, a step a line.
func (w *Write) String() string {
	var b strings.Builder
	for _, s := range w.Steps {
		fmt.Fprintf(&b, "%s\n", s)
	}
	for _, e := range w.Errors {
		fmt.Fprintf(&b, "statement %d: %s\n", e.Index, e.Err)
	}
	return b.String()
}

// String prints the step in one line.
func (s Together) String() string {
	return fmt.Sprintf("statements %v together on %s %v", s.Index, s.Backend, s.Namespaces)
}

// String prints the step in one line.
func (s Each) String() string {
	return fmt.Sprintf("statement %d on each of %v%s", s.Index, s.Routed.Targets, suffix(s.Guard, s.Upsert))
}

// String prints the step in one line.
func (s First) String() string {
	return fmt.Sprintf("statement %d on the first with a match of %v%s", s.Index, s.Routed.Targets, suffix(s.Guard, s.Upsert))
}

func suffix(g *Guard, u *Upsert) string {
	var s string
	if g != nil {
		s += fmt.Sprintf(", provided that nothing matches in %v", g.Elsewhere)
	}
	if u != nil {
		s += fmt.Sprintf(", else upsert into %v", u.Target)
	}
	return s
}

// without returns doc without the elements of one key.
func without(doc bson.Document, key string) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, len(doc)))
	it := bson.Elements(doc)
	for it.Next() {
		if string(it.Key()) != key {
			dst = append(dst, it.Raw()...)
		}
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
