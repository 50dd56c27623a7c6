package retention

import (
	"fmt"
	"math"
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
	MaxDue     int             // time ranges that may be hidden and dropped at once; 0: no limit
	Confirmed  map[string]bool // by Name: partitions that someone has confirmed; they don't count for MaxDue
}

// Decision is what to do, in this order. With Stop set there is nothing to hide or drop.
type Decision struct {
	Make      []route.Place     // the ranges to make ahead, earliest first
	Hide      []route.Partition // oldest first
	Drop      []route.Partition // oldest first
	Stop      string            // why nothing is hidden or dropped, or ""
	Waiting   []route.Partition // what Stop is about
	Confirmed map[string]bool   // those of Input.Confirmed whose time has still come: the confirmation of others is over
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
	for _, p := range in.Partitions {
		hide, drop := in.due(p)
		switch {
		case p.State == route.Active && hide <= in.Now:
			d.Hide = append(d.Hide, p)
		case p.State == route.Hidden && drop <= in.Now:
			d.Drop = append(d.Drop, p)
		}
		if in.Confirmed[p.Name()] && hide <= in.Now {
			if d.Confirmed == nil {
				d.Confirmed = map[string]bool{}
			}
			d.Confirmed[p.Name()] = true
		}
	}
	if n := ranges(in.unconfirmed(d.Hide)) + ranges(in.unconfirmed(d.Drop)); in.MaxDue > 0 && n > in.MaxDue {
		d.Waiting = slices.Concat(d.Hide, d.Drop)
		d.Hide, d.Drop = nil, nil
		d.Stop = fmt.Sprintf("%d time ranges are due at once, more than %d: confirm if that is right", n, in.MaxDue)
	}
	return d
}

// never is later than all instants.
const never = math.MaxInt64

// due returns from when on a partition is to be hidden, and from when on to be dropped if it is Hidden.
func (in *Input) due(p route.Partition) (hide, drop int64) {
	if p.State != route.Hidden && (p.State != route.Active || p.Restored) {
		return never, never
	}
	hide = p.End + in.Layout.Time.Keep.Milliseconds()
	return hide, max(hide, p.Since+in.Hold.Milliseconds())
}

func (in *Input) unconfirmed(partitions []route.Partition) []route.Partition {
	return slices.DeleteFunc(slices.Clone(partitions), func(p route.Partition) bool { return in.Confirmed[p.Name()] })
}

// Next returns the first instant from which on Decide may have something to do, once what it decides for Now is done; ok is false if there is none.
// It is not after Now when something has become due meanwhile, such as the drop of what has just been hidden.
func Next(in Input) (at int64, ok bool) {
	t := in.Layout.Time
	if t == nil {
		return 0, false
	}
	at = never
	for _, p := range in.Partitions {
		hide, drop := in.due(p)
		switch {
		case t.Keep <= 0:
		case p.State == route.Hidden:
			at = min(at, drop)
		default:
			at = min(at, hide)
		}
		if p.State == route.Active && p.Start > in.Now {
			at = min(at, p.Start) // the collection may be filled again
		}
	}
	if start, end := t.Cell(in.Now); in.filling(start) {
		at = min(at, end) // one more range is to be made ahead
	}
	return at, at != never
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
	if !in.filling(start) {
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

// filling reports whether the current range, which begins at start, or the one before exists.
func (in *Input) filling(start int64) bool {
	return slices.ContainsFunc(in.Partitions, func(p route.Partition) bool {
		return p.State == route.Active && p.End >= start && p.Start <= in.Now
	})
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
