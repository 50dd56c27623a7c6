package route

import (
	"math"
	"slices"
	"sort"

	"oxbow/internal/query"
)

// Route is the answer to a filter.
type Route struct {
	// Partitions are indexes into Table.Partitions, ascending. The slice may be shared: it must not be changed.
	Partitions []int
	// One is set when the filter pins every field of the layout, so that it concerns at most one place even if partitions are made later:
	// one hash slot, one time range. Its Partition is -1 when that place has not been made.
	One *Place

	table *Table
	set   set
}

// Route finds the partitions that documents matching f can be in. A nil filter matches everything. The route is right for the
// simple collation only: under another one strings that differ can match, and the caller must not prune by it.
func (t *Table) Route(f *query.Filter) Route {
	r := Route{table: t, set: anything}
	if f != nil {
		r.set = reader{layout: t.Layout}.matching(f.Root(), false)
	}
	r.Partitions = t.partitionsOf(r.set)
	if len(r.Partitions) <= 1 {
		r.One = t.one(r.set)
	}
	return r
}

// partitionsOf returns the partitions that hold documents of a set.
func (t *Table) partitionsOf(s set) []int {
	if len(s) == 1 && len(s[0].times) <= 1 {
		return t.partitionsIn(nil, s[0], t.rangeOf(s[0].times))
	}
	var out []int
	for _, b := range s {
		if b.times == nil {
			out = append(out, t.partitionsIn(nil, b, interval{MinTime, MaxTime})...)
		}
		for i := range b.times {
			out = append(out, t.partitionsIn(nil, b, t.rangeOf(b.times[i:i+1]))...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// rangeOf returns the milliseconds from the first to the last instant of at most one interval of steps.
func (t *Table) rangeOf(times []interval) interval {
	if len(times) == 0 || t.Layout.Time == nil {
		return interval{MinTime, MaxTime}
	}
	per := t.Layout.Time.Unit.perUnit()
	return interval{times[0].lo * per, times[0].hi * per}
}

// partitionsIn appends to out the partitions of a box whose time range meets an interval of milliseconds.
func (t *Table) partitionsIn(out []int, b box, ms interval) []int {
	from := 0
	if ms.lo != MinTime {
		from = t.firstEndingAfter(ms.lo)
	}
	to := len(t.Partitions)
	if ms.hi != MaxTime {
		to = from + sort.Search(to-from, func(i int) bool { return t.Partitions[from+i].Start > ms.hi })
	}
	if b.slots == nil {
		return consecutive(from, to)
	}
	for from < to {
		next := t.nextRange(from)
		for _, slot := range b.slots {
			out = t.appendSlot(out, from, next, slot)
		}
		from = next
	}
	return out
}

// nextRange returns the index after the last partition of the time range that begins at an index.
func (t *Table) nextRange(first int) int {
	start := t.Partitions[first].Start
	// Where all slots are there once, as nearly always, it is this one.
	next := first + t.Layout.Hash.Count
	if next <= len(t.Partitions) && t.Partitions[next-1].Start == start && (next == len(t.Partitions) || t.Partitions[next].Start != start) {
		return next
	}
	return first + sort.Search(len(t.Partitions)-first, func(i int) bool { return t.Partitions[first+i].Start > start })
}

// appendSlot appends the partitions with a slot among those from index first until next, which are of one range.
func (t *Table) appendSlot(out []int, first, next, slot int) []int {
	i := first + slot
	if next-first != t.Layout.Hash.Count || t.Partitions[i].Slot != slot {
		i = first + sort.Search(next-first, func(i int) bool { return t.Partitions[first+i].Slot >= slot })
	}
	for ; i < next && t.Partitions[i].Slot == slot; i++ {
		out = append(out, i)
	}
	return out
}

// one returns the one place that a set concerns, or nil if it may be several or none.
func (t *Table) one(s set) *Place {
	if len(s) == 0 {
		return nil
	}
	slot := -1
	if t.Layout.Hash != nil {
		for i, b := range s {
			if len(b.slots) != 1 || i > 0 && b.slots[0] != slot {
				return nil
			}
			slot = b.slots[0]
		}
	}
	var ms interval
	if l := t.Layout.Time; l != nil {
		all := interval{math.MaxInt64, math.MinInt64}
		for _, b := range s {
			if b.times == nil {
				return nil
			}
			all = interval{min(all.lo, b.times[0].lo), max(all.hi, b.times[len(b.times)-1].hi)}
		}
		ms = t.rangeOf([]interval{all})
	}
	p := t.At(slot, ms.lo)
	if t.Layout.Time != nil && ms.hi >= p.End {
		return nil
	}
	return &p
}

// upTo holds the numbers from 0: routes of neighbouring partitions are slices of it.
var upTo = func() []int {
	list := make([]int, 4096)
	for i := range list {
		list[i] = i
	}
	return list
}()

// consecutive returns the numbers [from, to).
func consecutive(from, to int) []int {
	if from >= to {
		return nil
	}
	if to <= len(upTo) {
		return upTo[from:to:to]
	}
	list := make([]int, to-from)
	for i := range list {
		list[i] = from + i
	}
	return list
}
