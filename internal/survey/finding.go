package survey

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"oxbow/internal/terminal"
)

// Finding is one thing that is wrong.
type Finding struct {
	ID       string   `json:"id"`    // what it is, one of IDs
	About    string   `json:"about"` // the collection, member or replica set
	Serious  bool     `json:"serious"`
	Title    string   `json:"title"`
	Evidence string   `json:"evidence"`
	Mend     []string `json:"mend"` // commands, of the shell or of Oxbow
}

// IDs are all that Find can find.
var IDs = []string{
	"member-down", "member-behind", "fragile-majority", "oplog-short", "disk-filling", "many-files",
	"scan-running", "scans", "ttl-behind", "time-types", "no-time", "fragmented", "churn", "indexes-larger", "large",
}

// Thresholds say from where on something is wrong.
type Thresholds struct {
	Behind         time.Duration // of a secondary, beyond its delay
	Running        time.Duration // of an operation without an index
	ScannedFrom    int64         // documents of a collection whose scans count
	ScansPerSecond float64       // of a server, of whole collections
	TTLBehind      time.Duration
	ReusableBytes  int64   // of a collection's file
	ReusableShare  float64 // of the same
	ChangesPerDay  float64 // updates and deletes, by the documents there are
	ChangedFrom    int64   // documents of a collection whose changes count
	IndexBytes     int64   // of a collection whose indexes count
	UntimedFrom    int64   // documents of a collection that needs a time
	Large          int64   // documents of a collection
	Files          int     // collections and indexes of a deployment
	DiskDays       float64 // until a disk is full
	DiskShare      float64 // of a disk that is in use
	Backup         time.Duration
	ResyncBytes    int64 // a second, of a member that copies everything
}

// DefaultThresholds are what `oxbow observe` goes by. docs/observe.md says why.
var DefaultThresholds = Thresholds{
	Behind: time.Minute, Running: time.Second, ScannedFrom: 1_000_000, ScansPerSecond: 10, TTLBehind: 10 * time.Minute,
	ReusableBytes: 256 << 20, ReusableShare: .25, ChangesPerDay: 1, ChangedFrom: 10_000, IndexBytes: 64 << 20, UntimedFrom: 1_000_000,
	Large: 100_000_000, Files: 10_000, DiskDays: 30, DiskShare: .9, ResyncBytes: 50 << 20,
}

// finder collects findings.
type finder struct {
	s    *Survey
	t    Thresholds
	uri  string // for a shell
	list []Finding
}

// Find says what is wrong by the figures of a survey: the serious first, in the order of IDs. uri stands in the commands of Oxbow.
func Find(s *Survey, t Thresholds, uri string) []Finding {
	f := &finder{s: s, t: t, uri: terminal.Argument(uri), list: []Finding{}}
	f.members()
	f.majorities()
	f.oplogs()
	f.disks()
	f.files()
	f.running()
	f.scans()
	for i := range s.Collections {
		c := &s.Collections[i]
		if c.Capped {
			continue
		}
		f.expiry(c)
		f.times(c)
		f.holes(c)
		f.changes(c)
		f.indexes(c)
		f.size(c)
	}
	return sorted(f.list)
}

func (f *finder) add(serious bool, id, about, title, evidence string, mend ...string) {
	f.list = append(f.list, Finding{ID: id, About: about, Serious: serious, Title: title, Evidence: evidence, Mend: mend})
}

// sorted puts the serious first, else keeps the order of IDs and within that of what it is about.
func sorted(list []Finding) []Finding {
	slices.SortStableFunc(list, func(a, b Finding) int {
		serious := func(f Finding) int {
			if f.Serious {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(serious(a), serious(b)), cmp.Compare(slices.Index(IDs, a.ID), slices.Index(IDs, b.ID)), cmp.Compare(a.About, b.About))
	})
	return list
}

// sizeText writes a number of bytes as people read it.
func sizeText(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, i := float64(n)/unit, 0
	for value >= unit && i < 4 {
		value /= unit
		i++
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTP"[i])
}

// numberText writes a number as people read it.
func numberText(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// timeText writes a time as people read it.
func timeText(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.1f days", d.Hours()/24)
	case d >= time.Hour:
		return fmt.Sprintf("%.1f hours", d.Hours())
	case d >= time.Minute:
		return d.Round(time.Second).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
