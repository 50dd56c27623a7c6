package plan

import (
	"fmt"
	"strings"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/route"
)

// String prints the plan of a find: the route, the groups, what the gateway does itself.
func (p *Find) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", p.Source.Namespace(), p.Routed)
	fmt.Fprintf(&b, "send %s\n", p.Command)
	switch {
	case p.Sort != nil && len(p.Routed.Targets) > 1:
		fmt.Fprintf(&b, "merge by sort, %d ranges one after the other\n", len(p.Groups))
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
	printRest(&b, w.Missing, w.Errors)
	return b.String()
}

// String prints the step in one line.
func (s *Together) String() string {
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
	switch {
	case u == nil:
	case u.Target != nil:
		s += fmt.Sprintf(", else upsert into %s", u.Target)
	case u.Err != nil:
		s += fmt.Sprintf(", else refuse the upsert: %s", u.Err)
	}
	return s
}

// String prints the plan of an insert, a run a line.
func (p *Insert) String() string {
	var b strings.Builder
	for i := range p.Runs {
		fmt.Fprintf(&b, "%s\n", &p.Runs[i])
	}
	printRest(&b, p.Missing, p.Errors)
	return b.String()
}

// String prints the plan of a findAndModify.
func (p *FindAndModify) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", p.Routed)
	if p.Choose != nil {
		fmt.Fprintf(&b, "choose by %s", p.Choose)
	}
	fmt.Fprintf(&b, "send %s%s\n", p.Command, suffix(p.Guard, p.Upsert))
	printRest(&b, p.Missing, nil)
	return b.String()
}

// printRest prints the partitions to make and the statements refused.
func printRest(b *strings.Builder, missing []route.Place, errors []backend.WriteError) {
	for _, m := range missing {
		fmt.Fprintf(b, "make the partition of %s, slot %d\n", rangeText(m.Start, m.End), m.Slot)
	}
	for _, e := range errors {
		fmt.Fprintf(b, "statement %d: %s\n", e.Index, e.Err)
	}
}

func rangeText(start, end int64) string {
	if start == route.MinTime {
		return "all time"
	}
	return time.UnixMilli(start).UTC().Format(time.RFC3339) + " to " + time.UnixMilli(end).UTC().Format(time.RFC3339)
}
