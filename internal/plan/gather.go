package plan

import (
	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/route"
)

// gathering is the documents of an insert, in their order, with the partitions that they go to. It makes runs of them without copying one.
type gathering struct {
	src        Source
	abilities  Abilities
	index      []int32
	documents  []bson.Document
	partitions []int32
}

func newGathering(src Source, abilities Abilities, most int) *gathering {
	return &gathering{
		src: src, abilities: abilities,
		index: make([]int32, 0, most), documents: make([]bson.Document, 0, most), partitions: make([]int32, 0, most),
	}
}

func (g *gathering) add(index int32, doc bson.Document, partition int) {
	g.index = append(g.index, index)
	g.documents = append(g.documents, doc)
	g.partitions = append(g.partitions, int32(partition))
}

func (g *gathering) partition(i int32) *route.Partition { return &g.src.Collection.Table.Partitions[i] }

// whole reports whether a backend takes a write over several namespaces.
func (g *gathering) whole(name string) bool { return g.abilities(name).OneBatch }

// neighbours makes a run of all neighbours that one command takes.
func (g *gathering) neighbours() []Together {
	var runs []Together
	for begin := 0; begin < len(g.index); {
		first := g.partitions[begin]
		on := g.partition(first).Backend
		whole := g.whole(on)
		end := begin + 1
		for end < len(g.index) && (g.partitions[end] == first || whole && g.partition(g.partitions[end]).Backend == on) {
			end++
		}
		runs = append(runs, g.run(begin, end, whole))
		begin = end
	}
	return runs
}

// run is the documents from begin up to end as a run.
func (g *gathering) run(begin, end int, whole bool) Together {
	p := g.partition(g.partitions[begin])
	r := Together{Run{Backend: p.Backend, Index: g.index[begin:end:end], Statements: g.documents[begin:end:end], Pinned: true}}
	n := 1
	if whole {
		n = end - begin
	}
	r.Namespaces = make([]backend.Namespace, n)
	for i := range r.Namespaces {
		r.Namespaces[i] = namespaceOf(g.partition(g.partitions[begin+i]))
	}
	return r
}

func namespaceOf(p *route.Partition) backend.Namespace {
	return backend.Namespace{Database: p.Database, Collection: p.Collection}
}

// together makes one run of all that one command takes, wherever in the insert it stands.
func (g *gathering) together() []Together {
	groups := g.sort()
	runs := make([]Together, 0, len(groups))
	begin := 0
	for _, group := range groups {
		runs = append(runs, g.run(begin, group.end, group.whole))
		begin = group.end
	}
	return runs
}

// group is the documents that one command takes.
type group struct {
	backend string
	whole   bool
	end     int // where they end, once they are sorted; before that how many there are
}

// sort puts the documents of each group side by side, those of a group in their order, and the groups in the order of their first documents.
func (g *gathering) sort() []group {
	var groups []group
	of := make([]int32, len(g.partitions)) // the group of each document
	known := make(map[int32]int32)         // the group of each partition
	for i, partition := range g.partitions {
		n, ok := known[partition]
		if !ok {
			on := g.partition(partition).Backend
			if n = find(groups, on); n < 0 {
				n = int32(len(groups))
				groups = append(groups, group{backend: on, whole: g.whole(on)})
			}
			known[partition] = n
		}
		of[i] = n
		groups[n].end++
	}
	if len(groups) > 1 {
		g.arrange(groups, of)
	} else if len(groups) == 1 {
		groups[0].end = len(g.index)
	}
	return groups
}

// find returns the group of a backend that takes all of its documents as one command, or -1.
func find(groups []group, backend string) int32 {
	for i := range groups {
		if groups[i].whole && groups[i].backend == backend {
			return int32(i)
		}
	}
	return -1
}

// arrange moves the documents to their groups.
func (g *gathering) arrange(groups []group, of []int32) {
	end := 0
	for i := range groups {
		groups[i].end, end = end, end+groups[i].end
	}
	sorted := newGathering(g.src, g.abilities, 0)
	sorted.index, sorted.documents, sorted.partitions = make([]int32, len(of)), make([]bson.Document, len(of)), make([]int32, len(of))
	for i, n := range of {
		at := groups[n].end
		sorted.index[at], sorted.documents[at], sorted.partitions[at] = g.index[i], g.documents[i], g.partitions[i]
		groups[n].end++
	}
	*g = *sorted
}
