package route

import (
	"sort"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// Table is what routing needs of a collection: its layout and its Active partitions, ordered by Start, then Slot, then Generation. Two
// partitions of one range and slot, of different generations, may be active together after an undo; documents are placed in the later
// one that is not Opening. Ranges are equal or disjoint. Immutable.
type Table struct {
	Layout     Layout
	Partitions []Partition
}

// Place is where a document belongs.
type Place struct {
	Partition  int   // index into Table.Partitions, or -1: not made yet, or Opening
	Slot       int   // -1 without a hash layout
	Start, End int64 // the time range [Start, End): the partition's, or the cell to make, its neighbours already cut off
}

// Place finds a document's place at now (milliseconds since 1970). Errors are what the client gets: ShardKeyNotFound for a missing time
// field, TypeMismatch for an array on the hash field's path, BadValue for a value that is no time of the layout's unit and, where the
// partition does not exist, for a time beyond ahead or one that keep has passed under Reject.
func (t *Table) Place(doc bson.Document, now int64) (Place, error) {
	slot := -1
	if h := t.Layout.Hash; h != nil {
		var err error
		if slot, err = h.slotOf(doc); err != nil {
			return Place{}, err
		}
	}
	var (
		ms int64
		v  bson.Value
	)
	if l := t.Layout.Time; l != nil {
		var err error
		if v, ms, err = l.instantOf(doc); err != nil {
			return Place{}, err
		}
	}
	p := t.At(slot, ms)
	if p.Partition < 0 && t.Layout.Time != nil {
		return p, t.Layout.Time.admit(p, v, ms, now)
	}
	return p, nil
}

// At returns the place of a slot (-1 without a hash layout) and an instant (of no meaning without a time layout).
func (t *Table) At(slot int, ms int64) Place {
	p := Place{Partition: -1, Slot: slot, Start: MinTime, End: MaxTime}
	first := 0
	if t.Layout.Time != nil {
		first = t.firstEndingAfter(ms)
		if first == len(t.Partitions) || t.Partitions[first].Start > ms {
			p.Start, p.End = t.gap(first, ms)
			return p
		}
	}
	if first == len(t.Partitions) {
		return p
	}
	p.Start, p.End = t.Partitions[first].Start, t.Partitions[first].End
	p.Partition = t.slotIn(first, slot)
	return p
}

// firstEndingAfter returns the index of the first partition whose end is after an instant, or their number.
func (t *Table) firstEndingAfter(ms int64) int {
	return sort.Search(len(t.Partitions), func(i int) bool { return t.Partitions[i].End > ms })
}

// gap returns the calendar cell around an instant that no partition covers, without what the neighbours cover; next is the index of
// the first partition after it.
func (t *Table) gap(next int, ms int64) (start, end int64) {
	start, end = t.Layout.Time.Cell(ms)
	if next > 0 {
		start = max(start, t.Partitions[next-1].End)
	}
	if next < len(t.Partitions) {
		end = min(end, t.Partitions[next].Start)
	}
	return start, end
}

// slotIn returns the latest partition to write to with a slot among those of the range that begins at index first, or -1.
func (t *Table) slotIn(first, slot int) int {
	start := t.Partitions[first].Start
	i := t.latest(first, start, slot)
	for i >= first && t.Partitions[i].Opening {
		if i--; i < first || !t.holds(i, start, slot) {
			return -1
		}
	}
	return i
}

// latest returns the latest partition with a slot among those of the range that begins at index first, or -1.
func (t *Table) latest(first int, start int64, slot int) int {
	// Where all slots are there once, as nearly always, it is this one.
	if i := first + slot; slot >= 0 && i < len(t.Partitions) && t.holds(i, start, slot) && !t.holds(i+1, start, slot) {
		return i
	}
	after := first + sort.Search(len(t.Partitions)-first, func(i int) bool {
		p := &t.Partitions[first+i]
		return p.Start > start || p.Slot > slot
	})
	if i := after - 1; i >= first && t.holds(i, start, slot) {
		return i
	}
	return -1
}

// holds reports whether the partition at an index is one of a range and slot.
func (t *Table) holds(i int, start int64, slot int) bool {
	return i < len(t.Partitions) && t.Partitions[i].Start == start && t.Partitions[i].Slot == slot
}

// instantOf reads a document's time.
func (t *Time) instantOf(doc bson.Document) (v bson.Value, ms int64, err error) {
	v, ok, array := t.Field.Lookup(doc)
	switch {
	case array:
		return v, 0, mongoerr.New(mongoerr.BadValue, "the time field '%s' must hold %s, and must not hold an array or lie inside one", t.Field, t.Unit.wants())
	case !ok:
		return v, 0, mongoerr.New(mongoerr.ShardKeyNotFound, "the document has no time field '%s', which must hold %s", t.Field, t.Unit.wants())
	}
	ms, err = t.Instant(v)
	return v, ms, err
}

// admit decides whether a partition may be made for a document's time.
func (t *Time) admit(p Place, v bson.Value, ms, now int64) error {
	if limit := t.limit(now); ms >= limit {
		why := "it is at or after " + instantText(limit) + ", beyond the partitions that may be made ahead"
		return t.refuse(v, join(why, guess(ms/t.Unit.perUnit(), t.Unit)))
	}
	if t.Keep > 0 && t.Late == Reject && p.End <= now-t.Keep.Milliseconds() {
		why := "it is older than the collection keeps, and late documents are rejected"
		return t.refuse(v, join(why, guess(ms/t.Unit.perUnit(), t.Unit)))
	}
	return nil
}

// limit returns the end of the last cell that may be made at now.
func (t *Time) limit(now int64) int64 {
	_, end := t.Cell(now)
	for range t.Ahead {
		_, end = t.Cell(end)
	}
	return end
}

func join(why, guess string) string {
	if guess == "" {
		return why
	}
	return why + "; " + guess
}
