package retention

import (
	"fmt"
	"slices"
	"time"

	"oxbow/internal/route"
)

// Input is what a decision about one collection is made from.
type Input struct {
	Now        int64 // milliseconds since 1970, as Now of this package gives it
	Layout     route.Layout
	Partitions []route.Partition // of every state, in a Table's order
	Hold       time.Duration
	MaxDue     int  // time ranges that may be hidden and dropped at once; 0: no limit
	Confirmed  bool // someone has confirmed that more than MaxDue are right
}

// Decision is what to do, in this order. With Stop set there is nothing to hide or drop.
type Decision struct {
	Make []route.Place     // the ranges to make ahead, earliest first
	Hide []route.Partition // oldest first
	Drop []route.Partition // oldest first
	Stop string            // why nothing is hidden or dropped, or ""
}

// Decide decides what is due at now. Partitions are made ahead while a collection is being filled: when its current range, or the one
// before, exists. A partition is hidden when its end is at or before now − keep, unless it was brought back by hand, and dropped once it has
// been hidden for hold.
func Decide(in Input) Decision {
	t := in.Layout.Time
	if t == nil {
		return Decision{}
	}
	d := Decision{Make: ahead(in)}
	if t.Keep <= 0 {
		return d
	}
	expiry := in.Now - t.Keep.Milliseconds()
	for _, p := range in.Partitions {
		switch {
		case p.End > expiry:
		case p.State == route.Active && !p.Restored:
			d.Hide = append(d.Hide, p)
		case p.State == route.Hidden && p.Since+in.Hold.Milliseconds() <= in.Now:
			d.Drop = append(d.Drop, p)
		}
	}
	if n := ranges(d.Hide) + ranges(d.Drop); in.MaxDue > 0 && n > in.MaxDue && !in.Confirmed {
		d.Hide, d.Drop = nil, nil
		d.Stop = fmt.Sprintf("%d time ranges are due at once, more than %d: confirm if that is right", n, in.MaxDue)
	}
	return d
}

// ranges counts the time ranges of partitions that are ordered by them.
func ranges(partitions []route.Partition) int {
	n := 0
	for i, p := range partitions {
		if i == 0 || p.Start != partitions[i-1].Start {
			n++
		}
	}
	return n
}

// ahead returns the current range and those ahead of it that lack partitions.
func ahead(in Input) []route.Place {
	t := in.Layout.Time
	start, _ := t.Cell(in.Now)
	filled := func(p route.Partition) bool {
		return p.State == route.Active && p.End >= start && p.Start <= in.Now
	}
	if !slices.ContainsFunc(in.Partitions, filled) {
		return nil
	}
	known := route.Table{Layout: in.Layout, Partitions: in.Partitions}
	var list []route.Place
	for at, i := in.Now, 0; i <= t.Ahead; i++ {
		p := known.At(-1, at)
		if active(in.Partitions, p.Start) < slots(in.Layout) {
			p.Partition = -1
			list = append(list, p)
		}
		at = p.End
	}
	return list
}

func slots(l route.Layout) int {
	if l.Hash == nil {
		return 1
	}
	return l.Hash.Count
}

// active counts the slots of the range from start that have an Active partition.
func active(partitions []route.Partition, start int64) int {
	there := map[int]bool{}
	for _, p := range partitions {
		if p.Start == start && p.State == route.Active {
			there[p.Slot] = true
		}
	}
	return len(there)
}
