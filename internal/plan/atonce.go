package plan

// AtOnce returns how many of the first steps of an ordered write go out at once where its order holds within each partition only: those that concern
// different partitions. A step that looks into several goes alone.
func AtOnce(steps []Step) int {
	n := 0
	for ; n < len(steps); n++ {
		next, together := steps[n].(*Together)
		if !together { // it looks into several partitions
			return max(n, 1)
		}
		for _, s := range steps[:n] {
			if earlier := s.(*Together); earlier.meets(&next.Run) {
				return n
			}
		}
	}
	return n
}

// meets reports whether two runs concern the same partition. Runs over several are taken to do so where they go to the same backend.
func (r *Run) meets(other *Run) bool {
	if r.Backend != other.Backend {
		return false
	}
	return len(r.Namespaces) > 1 || len(other.Namespaces) > 1 || r.Namespaces[0] == other.Namespaces[0]
}
