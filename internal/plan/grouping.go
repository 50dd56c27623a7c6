package plan

import (
	"oxbow/internal/backend"
	"oxbow/internal/bson"
)

// grouping puts the statements of an update or delete together into runs.
type grouping struct {
	neighbours bool // only neighbours, for the sake of their order
	abilities  Abilities
	runs       []Together
	open       map[runKey]int // the run of a target, of those before the last
	last       runKey
	first      *firstRun // the room of the first run, until that begins
}

// firstRun is the room of a run, and of its first statement.
type firstRun struct {
	runs       [1]Together
	namespaces [1]backend.Namespace
	index      [1]int32
	statements [1]bson.Document
}

// runKey tells what one run takes.
type runKey struct {
	target Target
	pinned bool
}

// key returns the key of a statement's run, and whether its backend takes a write over several namespaces.
func (g *grouping) key(t *Target, pinned bool) (key runKey, whole bool) {
	if g.abilities(t.Backend).OneBatch {
		return runKey{Target{Backend: t.Backend}, pinned}, true
	}
	return runKey{*t, pinned}, false
}

// add appends a statement to the run that can take it, or begins one.
func (g *grouping) add(t *Target, pinned bool, index int32, doc bson.Document) {
	key, whole := g.key(t, pinned)
	i, found := g.find(key)
	if !found {
		i = g.begin(key, Run{Backend: t.Backend, Pinned: pinned})
		g.runs[i].Namespaces = append(g.runs[i].Namespaces, t.Namespace)
	} else if whole {
		g.runs[i].Namespaces = append(g.runs[i].Namespaces, t.Namespace)
	}
	g.runs[i].Index = append(g.runs[i].Index, index)
	g.runs[i].Statements = append(g.runs[i].Statements, doc)
}

// elsewhere reports whether statements for the same target wait in a run that can't take one that is pinned otherwise, while several runs are gathered.
func (g *grouping) elsewhere(t *Target, pinned bool) bool {
	if g.neighbours {
		return false
	}
	key, _ := g.key(t, !pinned)
	_, found := g.find(key)
	return found
}

// find returns the run that takes a statement for key: the last one where only neighbours go together, any of the same key elsewhere.
func (g *grouping) find(key runKey) (int, bool) {
	if last := len(g.runs) - 1; last < 0 || g.last == key || g.neighbours {
		return last, last >= 0 && g.last == key
	}
	i, ok := g.open[key]
	return i, ok
}

// begin appends a run.
func (g *grouping) begin(key runKey, r Run) int {
	if first := g.first; first != nil {
		r.Namespaces, r.Index, r.Statements = first.namespaces[:0], first.index[:0], first.statements[:0]
		g.first = nil
	}
	i := len(g.runs)
	if i > 0 && !g.neighbours {
		if g.open == nil {
			g.open = make(map[runKey]int)
		}
		g.open[g.last] = i - 1
	}
	g.runs, g.last = append(g.runs, Together{r}), key
	return i
}

// reset forgets all runs.
func (g *grouping) reset() { g.runs, g.open, g.last = nil, nil, runKey{} }
