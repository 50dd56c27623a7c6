package ways

import "time"

// Options tell what data and load to compare ways on; the zero value of a field is its default, where one is named.
type Options struct {
	Documents int64     // at the start, half of them old
	Size      int       // bytes of a document
	End       time.Time // of the last document of the start; zero: now
	Inserts   int       // foreground documents a second; 0: none
	Updates   int       // foreground updates a second, half of them by _id alone; 0: none
	OldUpdate int       // percent of the updates' calls that concern documents of the start; the others concern those inserted lately

	Idle  time.Duration // length of the phase without a way
	Limit time.Duration // what a way may take; then it is stopped
	// After is how long to look on when a way has ended; what the foreground feels of a way is measured for as long from its beginning, at least. 0: 10 s.
	After time.Duration

	Batch       int           // documents an insert; 0: 100
	UpdateBatch int           // updates a bulk write; 0: 50
	Workers     int           // foreground calls at a time, of inserts and of updates each; 0: 4
	FillWorkers int           // 0: 4
	Devices     int           // different values of dev; 0: 10,000
	Recent      time.Duration // how far back updates of new documents reach; 0: 30 s
	Every       time.Duration // between two samples; 0: 1 s
	WarmUp      time.Duration // of the foreground, before the idle phase; 0: 5 s
}

func (o Options) withDefaults() Options {
	for _, n := range []struct {
		of       *int
		standard int
	}{{&o.Batch, 100}, {&o.UpdateBatch, 50}, {&o.Workers, 4}, {&o.FillWorkers, 4}, {&o.Devices, 10_000}} {
		if *n.of <= 0 {
			*n.of = n.standard
		}
	}
	for _, d := range []struct {
		of       *time.Duration
		standard time.Duration
	}{{&o.After, 10 * time.Second}, {&o.Recent, 30 * time.Second}, {&o.Every, time.Second}, {&o.WarmUp, 5 * time.Second}} {
		if *d.of <= 0 {
			*d.of = d.standard
		}
	}
	return o
}

// TimeField is the name of the field that holds a document's time, a date.
const TimeField = "time"

// fillBytes is about how much one insert of the filling carries.
const fillBytes = 256 << 10
