package plan

import (
	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/route"
	"oxbow/internal/statement"
)

// Insert is the plan of an insert into a collection with a layout.
type Insert struct {
	Namespace string // the application's
	Ordered   bool
	// ByPartition: an ordered insert keeps its order within each partition only, so runs of several go out at once.
	ByPartition bool
	Runs        []Together
	// Missing are the places whose partitions must be made before the plan can be run: make them and plan again.
	Missing []route.Place
	// Errors are the documents that have no place, by index; with Ordered at most one, and nothing behind it is in Runs.
	Errors []backend.WriteError
}

// Run is a part of a write that one backend takes as one command. Runs of an ordered write follow one another until one
// has an error, those of an unordered one go out at once.
type Run struct {
	Backend string
	// Namespaces holds one namespace for all statements; or one a statement, where the backend takes a write over several.
	Namespaces []backend.Namespace
	Index      []int32         // of each statement in the client's command, ascending
	Statements []bson.Document // documents, updates or deletes
	// Pinned: the statements belong to the place that they go to whatever partitions are made later, so a later try of them goes there too. Another
	// partition may come before this one at the next try of those that are not.
	Pinned bool
}

// Namespace returns the namespace that a statement of the run goes to.
func (r *Run) Namespace(i int) backend.Namespace {
	if len(r.Namespaces) == 1 {
		return r.Namespaces[0]
	}
	return r.Namespaces[i]
}

// Has reports whether the run has a statement of that index: a reply may speak of no other.
func (r *Run) Has(i int32) bool { return 0 <= i && int(i) < len(r.Statements) }

// Abilities tells what the backend of that name can do.
type Abilities func(name string) backend.Abilities

// NewInsert plans an insert at now (milliseconds since 1970). fill makes what the documents leave to the server.
func NewInsert(in *statement.Insert, src Source, abilities Abilities, fill statement.Fill, now int64) *Insert {
	if len(in.Documents) == 1 {
		return insertOne(in, src, fill, now)
	}
	p := &Insert{Namespace: src.Namespace(), Ordered: in.Ordered, ByPartition: src.ByPartition}
	g := newGathering(src, abilities, len(in.Documents))
	for i, doc := range in.Documents {
		partition, stored, err := p.place(doc, src, fill, now)
		if err != nil {
			p.Errors = append(p.Errors, backend.WriteError{Index: int32(i), Err: mongoerr.From(err)})
			if in.Ordered {
				break
			}
			continue
		}
		if partition >= 0 {
			g.add(int32(i), stored, partition)
		}
	}
	if in.Ordered && !p.ByPartition {
		p.Runs = g.neighbours()
	} else {
		p.Runs = g.together()
	}
	return p
}

// insertOne is NewInsert for one document.
func insertOne(in *statement.Insert, src Source, fill statement.Fill, now int64) *Insert {
	whole := &struct { // one allocation for what belongs together
		Insert
		first firstRun
	}{Insert: Insert{Namespace: src.Namespace(), Ordered: in.Ordered, ByPartition: src.ByPartition}}
	p, first := &whole.Insert, &whole.first
	partition, stored, err := p.place(in.Documents[0], src, fill, now)
	switch {
	case err != nil:
		p.Errors = []backend.WriteError{{Index: 0, Err: mongoerr.From(err)}}
	case partition >= 0:
		to := &src.Collection.Table.Partitions[partition]
		first.namespaces[0], first.statements[0] = namespaceOf(to), stored
		first.runs[0].Run = Run{Backend: to.Backend, Namespaces: first.namespaces[:], Index: first.index[:], Statements: first.statements[:], Pinned: true}
		p.Runs = first.runs[:]
	}
	return p
}

// place returns a document as it will be stored and the partition that it belongs to; -1 when that is missing.
func (p *Insert) place(doc bson.Document, src Source, fill statement.Fill, now int64) (partition int, stored bson.Document, err error) {
	if stored, err = statement.Storable(doc, fill); err != nil {
		return 0, nil, err
	}
	place, err := src.Collection.Table.Place(stored, now)
	if err != nil {
		return 0, nil, err
	}
	if place.Partition < 0 {
		p.Missing = addMissing(p.Missing, place)
	}
	return place.Partition, stored, nil
}

// addMissing adds a place unless it is the one that came last: neighbours in a batch mostly share theirs.
func addMissing(missing []route.Place, p route.Place) []route.Place {
	if n := len(missing); n > 0 && missing[n-1] == p {
		return missing
	}
	return append(missing, p)
}
