package retention

import (
	"fmt"
	"time"
)

// Reading is what the clocks showed at one moment.
type Reading struct {
	Wall      int64         // this machine's clock, milliseconds since 1970
	Backend   int64         // the backend's clock, the same; 0 where it has none of its own
	Monotonic time.Duration // since some fixed moment
}

// tolerance is how far the wall clock may be moved against monotonic time, and how much more for each thousandth of the time that passed:
// more than corrections by NTP come to.
const tolerance = time.Minute

// Now returns the time that retention goes by, the lesser of the wall clock and the backend's, in milliseconds since 1970. since is an earlier
// reading: when the wall clock has moved by more or less than monotonic time since then, stop says so.
func Now(since, reading Reading) (now int64, stop string) {
	now = reading.Wall
	if reading.Backend != 0 {
		now = min(now, reading.Backend)
	}
	passed := reading.Monotonic - since.Monotonic
	moved := time.Duration(reading.Wall-since.Wall) * time.Millisecond
	if jump := moved - passed; jump.Abs() > tolerance+passed/1000 {
		return now, fmt.Sprintf("the clock jumped by %s: it moved by %s while %s passed; confirm if it is right now",
			jump.Round(time.Second), moved.Round(time.Second), passed.Round(time.Second))
	}
	return now, ""
}
