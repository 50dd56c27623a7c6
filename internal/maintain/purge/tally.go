package purge

import (
	"fmt"

	"oxbow/internal/maintain"
)

// tally is what a job has done. It is part of checkpoints.
type tally struct {
	Gone     int64 `bson:"gone"`
	Bytes    int64 `bson:"bytes"` // of them, by the average size of a document
	Archived int64 `bson:"archived"`
	Skipped  int64 `bson:"skipped"`
	Examined int64 `bson:"examined"` // lately, of what can be told
	Taken    int64 `bson:"taken"`    // of those examined lately
}

// ratioAfter is how many must have been examined before their ratio says something; twice as many are remembered.
const ratioAfter = 10_000

// look notes how many were examined for those that went, and refuses to go on when it were too many.
func (t *tally) look(examined, taken int64, most float64) error {
	t.Examined += examined
	t.Taken += taken
	if t.Examined < ratioAfter {
		return nil
	}
	if float64(t.Examined) > most*float64(max(t.Taken, 1)) {
		return &Refusal{Reason: fmt.Sprintf("%d documents were examined for %d that went, more than the %g for one that are allowed", t.Examined, t.Taken, most)}
	}
	if t.Examined > 2*ratioAfter {
		t.Examined, t.Taken = t.Examined/2, t.Taken/2
	}
	return nil
}

// add adds what another tally has more than nothing.
func (t *tally) add(o tally) {
	t.Gone += o.Gone
	t.Bytes += o.Bytes
	t.Archived += o.Archived
	t.Skipped += o.Skipped
}

// changedReason is why a document that was read is still there, or went by another hand.
const changedReason = "changed or gone between reading and deleting"

// outcome is what a step of this tally did.
func (t *tally) outcome() maintain.Outcome {
	o := maintain.Outcome{Documents: t.Gone, Bytes: t.Bytes, Remaining: -1}
	if t.Skipped > 0 {
		o.Skipped = []maintain.Skip{{Reason: changedReason, Count: t.Skipped}}
	}
	return o
}
