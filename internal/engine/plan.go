package engine

import (
	"fmt"
	"strings"

	"oxbow/internal/query"
)

// plan is how a query will be answered. It is printable and holds no storage.
type plan struct {
	scans  []scan        // none: nothing can match; several: alternatives, whose documents are joined
	id     bool          // the one scan is of one _id, straight to the document
	merge  *query.Sort   // each scan gives this order, and so do they together; nil: one scan, or no order asked
	filter *query.Filter // what is left to test on documents; nil: keys decide
	sort   *query.Sort   // to sort by in memory; nil: none asked, or the scans give it
	skip   int64
	limit  int64
	reason string

	rejected []*plan // with explained: the other ways there were
	counting bool    // shown as Count carries it out
}

// several reports whether a document may come up more than once.
func (p *plan) several() bool { return len(p.scans) > 1 || len(p.scans) == 1 && p.scans[0].multikey }

// keep returns how many documents a sort in memory has to keep; 0: all.
func (p *plan) keep() int64 {
	if p.limit == 0 {
		return 0
	}
	return saturatingAdd(p.skip, p.limit)
}

// String shows the plan as a tree, a stage a line, and the reason.
func (p *plan) String() string {
	var b strings.Builder
	depth := 0
	line := func(format string, args ...any) {
		fmt.Fprintf(&b, "%s"+format+"\n", append([]any{strings.Repeat("  ", depth)}, args...)...)
		depth++
	}
	if p.limit > 0 {
		line("LIMIT %d", p.limit)
	}
	if p.skip > 0 {
		line("SKIP %d", p.skip)
	}
	if p.sort != nil {
		line("SORT %s", sortText(p.sort))
	}
	switch {
	case len(p.scans) == 0:
		line("EOF")
	case p.id:
		line("IDHACK %s%s", p.scans[0].bounds.fields[0].in, filterText(p.filter))
	case len(p.scans) == 1 && p.scans[0].whole():
		line("COLLSCAN %s%s", directionText(p.scans[0].backward), filterText(p.filter))
	default:
		p.scanLines(line, &depth)
	}
	fmt.Fprintf(&b, "because %s\n", p.reason)
	return b.String()
}

func (p *plan) scanLines(line func(string, ...any), depth *int) {
	line("FETCH%s", filterText(p.filter))
	if len(p.scans) > 1 && p.merge != nil {
		line("SORT_MERGE %s", sortText(p.merge))
	} else if len(p.scans) > 1 {
		line("OR")
	}
	for i := range p.scans {
		at := *depth
		line("IXSCAN %s", p.scans[i].String())
		*depth = at
	}
}

// whole reports whether the scan reads all documents, as no index would have it.
func (s *scan) whole() bool { return s.name == "" }

// String shows the index, the direction and the bounds.
func (s *scan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", s.name, directionText(s.backward))
	if s.multikey {
		b.WriteString(" multikey")
	}
	if s.min != nil || s.max != nil {
		fmt.Fprintf(&b, " from %s below %s", documentText(s.min), documentText(s.max))
		return b.String()
	}
	for i := range s.keys {
		f := &s.bounds.fields[i]
		fmt.Fprintf(&b, " %s: %s", f.path, strings.Join(f.in.texts(s.keys[i].Desc != s.backward), " "))
		if len(f.in) == 0 {
			b.WriteString("nothing")
		}
	}
	return b.String()
}

func directionText(backward bool) string {
	if backward {
		return "backward"
	}
	return "forward"
}

func filterText(f *query.Filter) string {
	if f == nil {
		return ""
	}
	return " filter " + documentText(f.Raw())
}

func sortText(s *query.Sort) string {
	parts := make([]string, len(s.Keys))
	for i, k := range s.Keys {
		direction := 1
		if k.Desc {
			direction = -1
		}
		parts[i] = fmt.Sprintf("%s: %d", k.Path.String(), direction)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
