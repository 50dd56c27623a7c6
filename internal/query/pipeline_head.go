package query

import (
	"math"
	"slices"

	"oxbow/internal/bson"
)

// Head is the part of a pipeline that is a find.
type Head struct {
	Filter bson.Document // nil: all
	Sort   bson.Document // nil: none
	Skip   int64
	Limit  int64         // 0: none
	Let    bson.Document // the command's let for variables that Filter names, beyond those of the pipeline's own command; nil: none
}

// Head splits off what a collection can do itself: the filter of the leading $match stages (nil if none), then a $sort, $skip and $limit
// directly behind, as find's arguments. rest is what is left to run on that stream. A bare count ($count, or $group of a constant with
// $sum of a constant) is in rest like any other stage.
func (p *Pipeline) Head() (head Head, rest *Pipeline) {
	stages := p.stages
	var filters []bson.Document
	for len(stages) > 0 {
		m, ok := stages[0].(*matchStage)
		if !ok {
			break
		}
		if len(m.raw) > len(emptyDocument) {
			filters = append(filters, m.raw)
		}
		stages = stages[1:]
	}
	switch len(filters) {
	case 0:
	case 1:
		head.Filter = filters[0]
	default:
		head.Filter = junctionOf("$and", filters)
	}
	if len(stages) > 0 {
		if s, ok := stages[0].(*sortStage); ok {
			head.Sort = s.raw
			stages = stages[1:]
		}
	}
	for len(stages) > 0 && head.window(stages[0]) {
		stages = stages[1:]
	}
	return head, &Pipeline{stages: stages}
}

// window takes a $skip or $limit into the head, which skips before it limits, and reports whether it could.
func (h *Head) window(s stage) bool {
	switch s := s.(type) {
	case *skipStage:
		if h.Limit > 0 && s.n >= h.Limit || s.n > math.MaxInt64-h.Skip {
			return false
		}
		h.Skip += s.n
		if h.Limit > 0 {
			h.Limit -= s.n
		}
	case *limitStage:
		if h.Limit == 0 || s.n < h.Limit {
			h.Limit = s.n
		}
	default:
		return false
	}
	return true
}

// needs gathers the top-level fields that a pipeline reads.
type needs struct {
	fields []string
	all    bool
}

func (n *needs) add(fields []string, ok bool) {
	n.fields = append(n.fields, fields...)
	n.all = n.all || !ok
}

func (n *needs) expression(e *Expression) { n.add(e.Fields()) }

// Needs returns the top-level fields of its input that the pipeline can read, sorted, so that a caller may leave out the others (_id too, unless
// it is among them). all is true when it can read, or give back, every field.
func (p *Pipeline) Needs() (fields []string, all bool) {
	var n needs
	for _, s := range p.stages {
		ends := s.needs(&n)
		if n.all {
			return nil, true
		}
		if ends {
			slices.Sort(n.fields)
			return slices.Compact(n.fields), false
		}
	}
	return nil, true
}

func (m *matchStage) needs(n *needs) bool {
	n.filter(m.filter.Root())
	return false
}

func (p *projectStage) needs(n *needs) bool {
	if p.projection.mode == inclusion {
		n.add(p.projection.Fields())
		return true
	}
	n.add(p.projection.root.appendReads(nil))
	for _, c := range p.projection.root.children {
		if c.kind == branch { // it changes a part of the field
			n.fields = append(n.fields, c.name)
		}
	}
	return false
}

func (r *replaceRootStage) needs(n *needs) bool {
	n.expression(r.root)
	return true
}

func (*limitStage) needs(*needs) bool { return false }
func (*skipStage) needs(*needs) bool  { return false }
func (*countStage) needs(*needs) bool { return true }

func (s *sortStage) needs(n *needs) bool {
	for _, k := range s.sort.Keys {
		n.fields = append(n.fields, k.Path.Parts()[0])
	}
	return false
}

func (g *groupStage) needs(n *needs) bool {
	n.expression(g.id)
	for _, f := range g.fields {
		n.expression(f.of)
	}
	return true
}

func (u *unwindStage) needs(n *needs) bool {
	n.fields = append(n.fields, u.path[0])
	return false
}

func (l *lookupStage) needs(n *needs) bool {
	if l.local != nil {
		n.fields = append(n.fields, l.local[0])
	}
	for _, v := range l.vars {
		n.expression(v.of)
	}
	if len(l.as) > 1 {
		n.fields = append(n.fields, l.as[0])
	}
	return false
}

// filter adds the fields that a predicate reads.
func (n *needs) filter(node Node) {
	switch node := node.(type) {
	case nil:
	case *And:
		n.filters(node.Of)
	case *Or:
		n.filters(node.Of)
	case *Nor:
		n.filters(node.Of)
	case *Expr:
		n.expression(node.Expression)
	case *Compare:
		n.path(node.Path)
	case *In:
		n.path(node.Path)
	case *Exists:
		n.path(node.Path)
	case *Type:
		n.path(node.Path)
	case *Regex:
		n.path(node.Path)
	case *Mod:
		n.path(node.Path)
	case *Size:
		n.path(node.Path)
	case *ElemMatch:
		n.path(node.Path)
	case *Bits:
		n.path(node.Path)
	default:
		n.all = true
	}
}

func (n *needs) filters(of []Node) {
	for _, node := range of {
		n.filter(node)
	}
}

func (n *needs) path(p bson.Path) { n.fields = append(n.fields, p.Parts()[0]) }
