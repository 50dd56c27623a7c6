package bench

import "time"

// Options tell what load to put on a collection; the zero value of a field is its default.
type Options struct {
	Inserts     int           // documents a minute; 0: none
	Updates     int           // updates a minute, half of them by _id alone; 0: none
	Duration    time.Duration // 0: until the context ends
	Batch       int           // documents an insert; 0: 250
	UpdateBatch int           // updates an unordered bulk write, 1 for single updates; 0: 100
	Workers     int           // calls at a time, of inserts and of updates each; 0: 4
	Size        int           // bytes of a document, at least that of its fields without text; 0: 200
	TimeField   string        // 0: time
	Devices     int           // different values of dev; 0: 10,000
	Recent      time.Duration // an update concerns one of the documents inserted in that time before; 0: 30 s
	// Late lets a tenth of the documents carry a time up to this long ago, as devices do that send later; 0: none.
	Late time.Duration
}

func (o Options) withDefaults() Options {
	or := func(n *int, standard int) {
		if *n <= 0 {
			*n = standard
		}
	}
	or(&o.Batch, 250)
	or(&o.UpdateBatch, 100)
	or(&o.Workers, 4)
	or(&o.Size, 200)
	or(&o.Devices, 10_000)
	if o.Recent <= 0 {
		o.Recent = 30 * time.Second
	}
	if o.TimeField == "" {
		o.TimeField = "time"
	}
	return o
}

// recent is how many documents are inserted in the time that updates reach back to, at the rate asked for.
func (o Options) recent() int {
	return max(o.Batch, int(float64(o.Inserts)*o.Recent.Minutes()))
}

// Kind is what a call does.
type Kind int

// The kinds of call.
const (
	Insert Kind = iota
	UpdateByID
	UpdateByIDAndTime
	kinds
)

// String names a kind as reports do.
func (k Kind) String() string {
	return [kinds]string{"insert", "update by _id", "update by _id and time"}[k]
}
