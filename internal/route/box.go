package route

import (
	"cmp"
	"slices"
)

// interval is a range of field values in steps of the layout's unit, both ends included.
type interval struct{ lo, hi int64 }

// box is a set of documents: those whose time is in one of times and whose slot is in slots. A nil times, or a nil slots, is no
// condition; neither is ever empty and not nil.
type box struct {
	times []interval // ascending, disjoint
	slots []int      // ascending
}

// set is a union of boxes that holds all documents that a predicate matches, perhaps more. none matches nothing; any, no condition at all,
// is a single box without conditions. Sets are immutable.
type set []box

// most is how many boxes a set is allowed; beyond it precision is given up.
const most = 64

var (
	anything = set{{}}
	nothing  = set{}
)

func (s set) isAnything() bool { return len(s) == 1 && s[0].times == nil && s[0].slots == nil }

// and returns the intersection of two sets, or, where that would be too many boxes, the smaller one.
func (s set) and(o set) set {
	switch {
	case s.isAnything() || len(o) == 0:
		return o
	case o.isAnything() || len(s) == 0:
		return s
	case len(s)*len(o) > most && len(s) <= len(o):
		return s
	case len(s)*len(o) > most:
		return o
	}
	out := make(set, 0, len(s)*len(o))
	for _, a := range s {
		for _, b := range o {
			if c, ok := a.and(b); ok {
				out = append(out, c)
			}
		}
	}
	return out
}

// or returns the union of two sets.
func (s set) or(o set) set {
	switch {
	case s.isAnything() || len(o) == 0:
		return s
	case o.isAnything() || len(s) == 0:
		return o
	}
	out := append(slices.Clip(s), o...)
	if len(out) > most {
		return set{out.hull()}
	}
	return out
}

// hull returns one box around a set that is not empty.
func (s set) hull() box {
	h := box{times: []interval{}, slots: []int{}}
	for _, b := range s {
		if h.times != nil && b.times != nil {
			h.times = append(h.times, b.times...)
		} else {
			h.times = nil
		}
		if h.slots != nil && b.slots != nil {
			h.slots = append(h.slots, b.slots...)
		} else {
			h.slots = nil
		}
	}
	h.times = merged(h.times)
	slices.Sort(h.slots)
	h.slots = slices.Compact(h.slots)
	return h
}

// and returns the intersection of two boxes, and false if it is empty.
func (b box) and(o box) (box, bool) {
	switch {
	case b.times == nil:
		b.times = o.times
	case o.times != nil:
		b.times = overlap(b.times, o.times)
		if len(b.times) == 0 {
			return b, false
		}
	}
	switch {
	case b.slots == nil:
		b.slots = o.slots
	case o.slots != nil:
		b.slots = common(b.slots, o.slots)
		if len(b.slots) == 0 {
			return b, false
		}
	}
	return b, true
}

// overlap returns the intersection of two lists of intervals.
func overlap(a, b []interval) []interval {
	out := make([]interval, 0, max(len(a), len(b)))
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if lo, hi := max(a[i].lo, b[j].lo), min(a[i].hi, b[j].hi); lo <= hi {
			out = append(out, interval{lo, hi})
		}
		if a[i].hi < b[j].hi {
			i++
		} else {
			j++
		}
	}
	return out
}

// common returns the slots of both lists.
func common(a, b []int) []int {
	out := make([]int, 0, min(len(a), len(b)))
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			out = append(out, a[i])
			i++
			j++
		}
	}
	return out
}

// merged sorts intervals and joins those that overlap or touch, in place.
func merged(list []interval) []interval {
	if len(list) < 2 {
		return list
	}
	slices.SortFunc(list, func(a, b interval) int { return cmp.Compare(a.lo, b.lo) })
	out := list[:1]
	for _, next := range list[1:] {
		if last := &out[len(out)-1]; next.lo <= last.hi+1 {
			last.hi = max(last.hi, next.hi)
		} else {
			out = append(out, next)
		}
	}
	return out
}
