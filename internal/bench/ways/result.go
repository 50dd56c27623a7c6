package ways

import (
	"fmt"
	"time"

	"oxbow/internal/bench"
)

// Result is a comparison.
type Result struct {
	Server    string    `json:"server"` // MongoDB's version that it answers as
	Started   time.Time `json:"started"`
	Documents int64     `json:"documents"` // of each run, at the start
	Old       int64     `json:"old"`       // of them, what has to go
	Size      int       `json:"documentBytes"`
	Inserts   int       `json:"insertsPerSecond"` // asked of the foreground
	Updates   int       `json:"updatesPerSecond"`
	Runs      []Run     `json:"runs"`
}

// Run is what became of one way. A figure that the server does not report is nil.
type Run struct {
	Way   string `json:"way"`
	About string `json:"about"`
	// Stopped is why it ended before all was gone; "" if it did not.
	Stopped string `json:"stopped,omitempty"`
	// Failure is what went wrong with the run, so that it was not counted what is left; "": nothing did.
	Failure string `json:"failure,omitempty"`
	// Refused is why it was not run at all; everything below is zero then.
	Refused string `json:"refused,omitempty"`

	Idle   Phase   `json:"idle"`    // before it
	During Phase   `json:"during"`  // while it ran, and for Options.After from its beginning at least
	Took   float64 `json:"seconds"` // of the way alone
	Old    int64   `json:"old"`     // what had to go
	Gone   int64   `json:"gone"`
	Came   int64   `json:"came"` // inserted by the foreground while it ran

	DiskBefore *int64   `json:"diskBytesBefore,omitempty"` // when it began
	DiskAfter  *int64   `json:"diskBytesAfter,omitempty"`  // at the end of the run
	Oplog      *int64   `json:"oplogBytes,omitempty"`      // written while it ran, the foreground's included
	Lag        *float64 `json:"worstLagSeconds,omitempty"`

	Left      int64        `json:"left"`    // of a way that finished: what had to go and is there
	Missing   int64        `json:"missing"` // what had to stay and is not there; below 0: more than was acknowledged
	Unmatched int64        `json:"unmatched"`
	Failed    int64        `json:"failed"` // documents of the foreground
	Errors    bench.Errors `json:"errors,omitempty"`

	Fit     Fit      `json:"fit"`
	Samples []Sample `json:"samples"`
}

// Phase is the foreground in a part of a run.
type Phase struct {
	Seconds  float64 `json:"seconds"`
	Calls    int64   `json:"calls"`
	P50      int64   `json:"p50Micros"`
	P99      int64   `json:"p99Micros"`
	Inserted int64   `json:"inserted"`
	Updated  int64   `json:"updated"`
	Held     float64 `json:"held"` // documents that were stored or changed, of those asked for
}

// Sample is how a run stood at one moment.
type Sample struct {
	At      float64  `json:"at"`                  // seconds from when the way began; below 0: idle
	P99     *int64   `json:"p99Micros,omitempty"` // of calls that were meant to begin since the sample before; nil: there were none
	Gone    int64    `json:"gone"`
	Backlog int64    `json:"backlog"` // see Run.Backlog
	Disk    *int64   `json:"diskBytes,omitempty"`
	Lag     *float64 `json:"lagSeconds,omitempty"`
	Oplog   *int64   `json:"oplogBytes,omitempty"` // since the first sample
}

// Fit says whether data may have fitted into the server's memory.
type Fit struct {
	Memory Memory `json:"memory"`
	Data   int64  `json:"dataBytes"` // documents and indexes, when the foreground began
	Disk   int64  `json:"diskBytes"` // the same as it lies on the disk, compressed
	// Why the run does not count; "" if it does.
	Why string `json:"doesNotCount,omitempty"`
}

// leastTimes is how many times the server's memory the data must be.
const leastTimes = 5

// fit compares what the data takes on the disk, which is what a page cache holds, to the memory.
func fit(m Memory, data, disk int64) Fit {
	f := Fit{Memory: m, Data: data, Disk: disk}
	switch {
	case m.Bytes <= 0:
		f.Why = "the server's memory is not known: " + m.By
	case disk < m.Bytes:
		f.Why = fmt.Sprintf("the data fitted into memory: %s on the disk, %s of memory (%s)", bench.Megabytes(disk), bench.Megabytes(m.Bytes), m.By)
	case disk < leastTimes*m.Bytes:
		f.Why = fmt.Sprintf("the data on the disk, %s, is less than %d times the memory, %s (%s)", bench.Megabytes(disk), leastTimes, bench.Megabytes(m.Bytes), m.By)
	}
	return f
}

// Finished reports whether all that had to go went.
func (r *Run) Finished() bool { return r.Stopped == "" && r.Refused == "" && r.Failure == "" }

// Rate is documents a second.
func (r *Run) Rate() float64 {
	if r.Took <= 0 {
		return 0
	}
	return float64(r.Gone) / r.Took
}

// Slope is how fast the backlog grew, in documents a second; below zero it shrank. The backlog is what had to go and as much again as came in
// since the way began: where data is kept for a time, as much becomes old as comes.
func (r *Run) Slope() float64 {
	if r.Took <= 0 {
		return 0
	}
	return float64(r.Came-r.Gone) / r.Took
}

// KeptUp reports whether the way was as fast as documents came in.
func (r *Run) KeptUp() bool { return r.Slope() <= 0 }

// Ratio is the foreground's p99 while the way ran by its p99 before; 0 where there was no call.
func (r *Run) Ratio() float64 {
	if r.Idle.P99 == 0 {
		return 0
	}
	return float64(r.During.P99) / float64(r.Idle.P99)
}

// Wrong says what is not as it had to be; "" if nothing is.
func (r *Run) Wrong() string {
	switch {
	case r.Left > 0:
		return fmt.Sprintf("%d old documents are still there", r.Left)
	case r.Missing > 0:
		return fmt.Sprintf("%d documents that had to stay are gone", r.Missing)
	case r.Unmatched > 0:
		return fmt.Sprintf("%d updates found nothing", r.Unmatched)
	case r.Missing < 0 && r.Failed == 0:
		return fmt.Sprintf("%d documents more than were written", -r.Missing)
	}
	return ""
}
