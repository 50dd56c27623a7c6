package throttle

import (
	"fmt"
	"time"
)

// Finding is what a probe found last.
type Finding struct {
	Probe   string
	Verdict Verdict
	Absent  string    // why it sees nothing here; "": it does. "off": it is turned off
	Began   time.Time // of the look
	At      time.Time // of its end; the zero time: it has not looked yet
	Full    bool      // it failed because a disk is full
}

// timing is how often things happen. A change is acted on within looks + patience + ticks, below two seconds.
const (
	lookEvery = 500 * time.Millisecond
	patience  = time.Second             // after which a look has failed
	lateAfter = 1700 * time.Millisecond // after which a finding is not believed any more
	tickEvery = 200 * time.Millisecond
)

// off stands in Finding.Absent.
const off = "off"

// judged is what a finding says at a time.
func (f *Finding) judged(now time.Time) Verdict {
	stop := func(reason string) Verdict { return Verdict{State: Stop, Probe: f.Probe, Reason: reason} }
	switch {
	case f.Absent == off:
		return going
	case f.At.IsZero():
		return stop(f.Probe + " has not looked yet")
	case now.Sub(f.At) > lateAfter:
		return stop(fmt.Sprintf("%s is late: it looked last %v ago", f.Probe, round(now.Sub(f.At))))
	case f.Absent != "":
		return going
	}
	return f.Verdict
}

// combine makes one verdict of all findings: the first stop, else the least share, raised by what hurries. What says that a disk is full is left out for work that frees it.
func combine(now time.Time, findings []Finding, frees bool) Verdict {
	least, hurry := going, going
	for i := range findings {
		f := &findings[i]
		if frees && (f.Probe == Disk || f.Full) {
			continue
		}
		v := f.judged(now)
		switch {
		case v.State == Stop:
			v.Share = 0
			return v
		case v.Share > hurry.Share:
			hurry = v
		case v.Share < least.Share:
			least = v
		}
	}
	switch {
	case hurry.Share == 1:
		return least
	case least.State == Go:
		return hurry
	}
	least.Share *= hurry.Share
	least.Reason += "; but hurry: " + hurry.Reason
	if least.Share >= 1 {
		least.State = Go
	}
	return least
}
