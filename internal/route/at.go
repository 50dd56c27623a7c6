package route

// At returns the time range that covers an instant, or the one to be made for it, for all slots: Slot is -1, and Partition too unless the
// layout has no hash and the partition exists.
func (t *Table) At(ms int64) Place {
	p := Place{Partition: -1, Slot: -1, Start: MinTime, End: MaxTime}
	t.find(&p, ms)
	return p
}
