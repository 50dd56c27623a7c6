package engine

import (
	"bytes"
	"sort"
	"strings"

	"oxbow/internal/bson"
)

// cut is a place between keys in the ascending key space of one index component: before every key that starts with key, or after
// all of them. An empty key with after false is the low end of the space, with after true the high end.
type cut struct {
	key   []byte
	after bool
	text  string // the value as explain shows it
}

// interval is the keys between two cuts.
type interval struct{ lo, hi cut }

// intervals are sorted, disjoint and not empty; none at all match nothing.
type intervals []interval

var (
	lowest  = cut{text: "MinKey"}
	highest = cut{after: true, text: "MaxKey"}
)

// everything is the whole key space.
func everything() intervals { return intervals{{lowest, highest}} }

// compareCuts orders cuts along the key space.
func compareCuts(a, b cut) int {
	n := min(len(a.key), len(b.key))
	if c := bytes.Compare(a.key[:n], b.key[:n]); c != 0 {
		return c
	}
	switch {
	case len(a.key) == len(b.key):
		return boolInt(a.after) - boolInt(b.after)
	case len(a.key) == n:
		return boolInt(a.after)*2 - 1
	default:
		return 1 - boolInt(b.after)*2
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// full reports whether the intervals hold every key.
func (s intervals) full() bool {
	return len(s) == 1 && len(s[0].lo.key) == 0 && len(s[0].hi.key) == 0
}

// point reports whether the interval holds the keys of one value only.
func (i interval) point() bool {
	return !i.lo.after && i.hi.after && len(i.lo.key) > 0 && bytes.Equal(i.lo.key, i.hi.key)
}

// points reports whether every interval is a point.
func (s intervals) points() bool {
	for _, i := range s {
		if !i.point() {
			return false
		}
	}
	return true
}

// normalized sorts s, drops empty intervals and joins those that touch.
func normalized(s intervals) intervals {
	kept := s[:0]
	for _, i := range s {
		if compareCuts(i.lo, i.hi) < 0 {
			kept = append(kept, i)
		}
	}
	sort.Slice(kept, func(a, b int) bool { return compareCuts(kept[a].lo, kept[b].lo) < 0 })
	out := kept[:0]
	for _, i := range kept {
		if n := len(out); n > 0 && compareCuts(i.lo, out[n-1].hi) <= 0 {
			if compareCuts(i.hi, out[n-1].hi) > 0 {
				out[n-1].hi = i.hi
			}
			continue
		}
		out = append(out, i)
	}
	return out
}

// union returns the keys in a or b.
func union(a, b intervals) intervals {
	return normalized(append(append(make(intervals, 0, len(a)+len(b)), a...), b...))
}

// intersect returns the keys in a and b.
func intersect(a, b intervals) intervals {
	var out intervals
	for i, j := 0, 0; i < len(a) && j < len(b); {
		lo, hi := a[i].lo, a[i].hi
		if compareCuts(b[j].lo, lo) > 0 {
			lo = b[j].lo
		}
		endsA := compareCuts(a[i].hi, b[j].hi) <= 0
		if !endsA {
			hi = b[j].hi
		}
		if compareCuts(lo, hi) < 0 {
			out = append(out, interval{lo, hi})
		}
		if endsA {
			i++
		} else {
			j++
		}
	}
	return out
}

// complement returns the keys not in s.
func complement(s intervals) intervals {
	var out intervals
	at := lowest
	for _, i := range s {
		if compareCuts(at, i.lo) < 0 {
			out = append(out, interval{at, i.lo})
		}
		at = i.hi
	}
	if compareCuts(at, highest) < 0 {
		out = append(out, interval{at, highest})
	}
	return out
}

// contains reports whether the keys of the encoded value lie in s.
func (s intervals) contains(key []byte) bool {
	c := cut{key: key}
	for _, i := range s {
		if compareCuts(i.lo, c) <= 0 && compareCuts(c, i.hi) < 0 {
			return true
		}
	}
	return false
}

// subset reports whether every key of s is in of.
func (s intervals) subset(of intervals) bool {
	return len(intersect(s, complement(of))) == 0
}

// String gives the intervals as explain shows them.
func (s intervals) String() string { return strings.Join(s.texts(false), " ") }

// texts returns one text an interval, in scan order; backward swaps the ends as MongoDB does.
func (s intervals) texts(backward bool) []string {
	out := make([]string, 0, len(s))
	for _, i := range s {
		if backward {
			out = append(out, bracket(!i.hi.after, "(", "[")+i.hi.text+", "+i.lo.text+bracket(i.lo.after, ")", "]"))
			continue
		}
		out = append(out, bracket(i.lo.after, "(", "[")+i.lo.text+", "+i.hi.text+bracket(!i.hi.after, ")", "]"))
	}
	if backward {
		for a, b := 0, len(out)-1; a < b; a, b = a+1, b-1 {
			out[a], out[b] = out[b], out[a]
		}
	}
	return out
}

func bracket(open bool, exclusive, inclusive string) string {
	if open {
		return exclusive
	}
	return inclusive
}

// span is an interval as bytes of the stored component: lo inclusive, hi exclusive; a nil hi is the end of the space.
type span struct{ lo, hi []byte }

// spans gives the intervals as the bytes of a component, in their order on disk.
func (s intervals) spans(desc bool) []span {
	out := make([]span, len(s))
	for n, i := range s {
		if desc {
			out[len(s)-1-n] = span{lo: stored(i.hi, true), hi: stored(i.lo, true)}
		} else {
			out[n] = span{lo: stored(i.lo, false), hi: stored(i.hi, false)}
		}
	}
	return out
}

// stored gives a cut as the least byte string behind it; nil is the end of the space.
func stored(c cut, desc bool) []byte {
	if !desc {
		if c.after {
			return prefixEnd(c.key)
		}
		return c.key
	}
	inverted := make([]byte, len(c.key))
	for i, b := range c.key {
		inverted[i] = ^b
	}
	if c.after {
		return inverted
	}
	return prefixEnd(inverted)
}

// prefixEnd returns the least byte string above all that start with p, or nil when there is none.
func prefixEnd(p []byte) []byte {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] != 0xff {
			end := append([]byte(nil), p[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}

// pointOf returns the interval of one value.
func pointOf(v bson.Value) interval {
	key, text := bson.AppendKey(nil, v, false), valueText(v)
	return interval{cut{key: key, text: text}, cut{key: key, after: true, text: text}}
}
