package route

import (
	"strconv"
	"strings"
)

// Reason says in words which partitions and why: "date >= 2001-01-15 and < 2001-01-22: 7 of 90 partitions".
func (r Route) Reason() string {
	var b strings.Builder
	r.why(&b)
	b.WriteString(": ")
	if len(r.Partitions) == len(r.table.Partitions) {
		b.WriteString("all ")
	} else {
		b.WriteString(strconv.Itoa(len(r.Partitions)))
		b.WriteString(" of ")
	}
	b.WriteString(strconv.Itoa(len(r.table.Partitions)))
	b.WriteString(" partitions")
	return b.String()
}

// shownBoxes is how many alternatives a reason spells out.
const shownBoxes = 3

func (r Route) why(b *strings.Builder) {
	switch {
	case len(r.set) == 0:
		b.WriteString("no document that the layout of ")
		r.writeFields(b, " and ")
		b.WriteString(" allows can match")
		return
	case r.set.isAnything():
		b.WriteString("no condition that bounds ")
		r.writeFields(b, " or ")
		return
	}
	for i, box := range r.set {
		if i == shownBoxes {
			b.WriteString(" or " + strconv.Itoa(len(r.set)-i) + " more alternatives")
			return
		}
		if i > 0 {
			b.WriteString(" or ")
		}
		r.writeBox(b, box)
	}
}

func (r Route) writeFields(b *strings.Builder, between string) {
	l := r.table.Layout
	if l.Time != nil {
		b.WriteString(l.Time.Field.String())
	}
	if l.Time != nil && l.Hash != nil {
		b.WriteString(between)
	}
	if l.Hash != nil {
		b.WriteString(l.Hash.Field.String())
	}
}

func (r Route) writeBox(b *strings.Builder, box box) {
	if box.times != nil {
		b.WriteString(r.table.Layout.Time.Field.String())
		r.writeTimes(b, box.times)
		if box.slots != nil {
			b.WriteString(", ")
		}
	}
	switch len(box.slots) {
	case 0:
	case 1:
		b.WriteString(r.table.Layout.Hash.Field.String() + " in slot " + strconv.Itoa(box.slots[0]))
	default:
		b.WriteString(r.table.Layout.Hash.Field.String() + " in " + strconv.Itoa(len(box.slots)) + " slots")
	}
}

func (r Route) writeTimes(b *strings.Builder, times []interval) {
	if len(times) > 1 {
		b.WriteString(" in " + strconv.Itoa(len(times)) + " ranges between " + r.instant(times[0].lo) + " and " + r.instant(times[len(times)-1].hi))
		return
	}
	i := times[0]
	if i.lo == i.hi {
		b.WriteString(" = " + r.instant(i.lo))
		return
	}
	last := r.table.Layout.Time.Unit.max()
	if i.lo > 0 || i.hi == last {
		b.WriteString(" >= " + r.instant(i.lo))
	}
	if i.lo > 0 && i.hi < last {
		b.WriteString(" and")
	}
	if i.hi < last {
		b.WriteString(" < " + r.instant(i.hi+1))
	}
}

// instant writes steps of the unit as an instant.
func (r Route) instant(steps int64) string {
	return instantText(steps * r.table.Layout.Time.Unit.perUnit())
}
