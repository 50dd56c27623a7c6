package maintain

import (
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"
)

// record is what is stored of a job, a document of the collection "jobs" under its id.
type record struct {
	ID     string     `bson:"_id"`
	Spec   storedSpec `bson:"spec"`
	Orders Orders     `bson:"orders"`
	Lease  lease      `bson:"lease"`

	Of         string     `bson:"of"`     // the print of the specification that all below belongs to
	State      State      `bson:"state"`  // with the next two for people only
	Reason     string     `bson:"reason"` // of the state
	Next       time.Time  `bson:"next"`   // when it will run again; zero: not known
	Ended      State      `bson:"ended"`  // Done, Failed or Stopped: it does not go on by itself; "": it does
	Because    string     `bson:"because"`
	NotBefore  time.Time  `bson:"notBefore"` // its next pass, or the rest of this one, because of what Because says; zero: now
	Checkpoint driver.Raw `bson:"checkpoint,omitempty"`
	Pass       passed     `bson:"pass"`
	Pace       paced      `bson:"pace"`
	Over       bool       `bson:"over"` // the pass is
	Failures   int        `bson:"failures"`
	Resumed    int64      `bson:"resumed"` // orders to resume that have been obeyed
	Spent      int64      `bson:"spent"`   // milliseconds of running since SpentFrom: the begin of a window or, without windows, of a pass
	SpentFrom  time.Time  `bson:"spentFrom"`
	Entries    int64      `bson:"entries"`
	Last       *Entry     `bson:"last,omitempty"`

	fault error // why the document can't be read; nothing else is known then
}

// lease is who runs a job.
type lease struct {
	Token   int64     `bson:"token"`   // grows with each owner
	Owner   string    `bson:"owner"`   // a process's own name; "": nobody
	Host    string    `bson:"host"`    // for people
	Beat    int64     `bson:"beat"`    // counts the renewals
	Length  int64     `bson:"length"`  // milliseconds
	Renewed time.Time `bson:"renewed"` // by the owner's clock
}

// passed is what a pass has done.
type passed struct {
	Begun     time.Time `bson:"begun"`
	Steps     int64     `bson:"steps"`
	Documents int64     `bson:"documents"`
	Bytes     int64     `bson:"bytes"`
	Skipped   []Skip    `bson:"skipped,omitempty"`
	Remaining int64     `bson:"remaining"`
}

// add adds a step.
func (p *passed) add(o *Outcome) {
	p.Steps++
	p.Documents += o.Documents
	p.Bytes += o.Bytes
	p.Remaining = o.Remaining
	if o.Done {
		p.Remaining = 0
	}
	p.Skipped = addSkips(p.Skipped, o.Skipped)
}

// maxSkips bounds the reasons that are told apart.
const maxSkips = 50

// addSkips adds counts by their reason; reasons beyond the bound count as one.
func addSkips(all, more []Skip) []Skip {
	all = append([]Skip(nil), all...)
	for _, s := range more {
		at := -1
		for i := range all {
			if all[i].Reason == s.Reason {
				at = i
			}
		}
		switch {
		case at >= 0:
			all[at].Count += s.Count
		case len(all) < maxSkips:
			all = append(all, s)
		default:
			all[maxSkips-1].Reason = "other reasons"
			all[maxSkips-1].Count += s.Count
		}
	}
	return all
}

// paced is the pace that a job goes at.
type paced struct {
	Rate  float64 `bson:"rate"`  // documents a second
	Share float64 `bson:"share"` // of the full pace
}
