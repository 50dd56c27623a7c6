package plan

// AtOnce returns how many of the first steps of an ordered write go out at once where its order holds within each partition only: those that concern
// different partitions. A step that looks into several goes alone.
func AtOnce(steps []Step) int {
	n := 0
	for ; n < len(steps); n++ {
		next, alone := steps[n].(*Together)
		if !alone {
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

// meets reports whether two runs concern a partition both. Runs of several are taken to where their backend is the same.
func (r *Run) meets(other *Run) bool {
	if r.Backend != other.Backend {
		return false
	}
	return len(r.Namespaces) > 1 || len(other.Namespaces) > 1 || r.Namespaces[0] == other.Namespaces[0]
}
