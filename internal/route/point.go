package route

import "oxbow/internal/bson"

// Point returns the one place that a filter concerns where a look at its bytes tells it: the filter names fields and the plain values that they equal,
// each field of the layout once and no operator anywhere, and the place has one partition. Route says the same of such a filter when it is compiled. False
// says nothing: ask Route.
func (t *Table) Point(filter bson.Document) (Place, bool) {
	p := pins{layout: t.Layout, slot: -1}
	it := bson.Elements(filter)
	for it.Next() {
		if !p.take(it.Key(), it.Value()) {
			return Place{}, false
		}
	}
	if it.Err() != nil || !p.all() {
		return Place{}, false
	}
	place := t.At(p.slot, p.ms)
	return place, place.Partition >= 0 && t.alone(place)
}

// pins are the values that a filter gives the fields of a layout.
type pins struct {
	layout       Layout
	slot         int
	ms           int64
	timed, slots bool // there is a value of the time field, of the hash field
}

// take notes one element of a filter. False: it is more than a field and a plain value, or gives a field of the layout a second one.
func (p *pins) take(key []byte, v bson.Value) bool {
	if len(key) == 0 || key[0] == '$' || !isPlain(v.Type) {
		return false
	}
	if t := p.layout.Time; t != nil && string(key) == t.Field.String() {
		ms, err := t.Instant(v)
		if err != nil || p.timed {
			return false
		}
		p.ms, p.timed = ms, true
	}
	if h := p.layout.Hash; h != nil && string(key) == h.Field.String() {
		if p.slots {
			return false
		}
		p.slot, p.slots = h.slot(v), true
	}
	return true
}

// all reports whether every field of the layout has its value.
func (p *pins) all() bool {
	return p.timed == (p.layout.Time != nil) && p.slots == (p.layout.Hash != nil)
}

// isPlain reports whether a filter's value of that type is one that the field equals: no document, which may hold operators, no array, which fields equal
// in two ways, no regular expression, and none of the types that filters treat apart.
func isPlain(t bson.Type) bool {
	switch t {
	case bson.TypeDouble, bson.TypeString, bson.TypeBinary, bson.TypeObjectID, bson.TypeBoolean, bson.TypeDateTime, bson.TypeInt32, bson.TypeTimestamp,
		bson.TypeInt64, bson.TypeDecimal128:
		return true
	}
	return false
}

// alone reports whether a place's partition is the only one of its range and slot: those of several generations may be read together.
func (t *Table) alone(p Place) bool {
	i := p.Partition
	start, slot := t.Partitions[i].Start, t.Partitions[i].Slot
	return !t.holds(i+1, start, slot) && (i == 0 || !t.holds(i-1, start, slot))
}
