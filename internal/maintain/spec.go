package maintain

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"reflect"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bson"
	"oxbow/internal/schedule"
)

// Spec says what a job is, and when it may run.
type Spec struct {
	ID         string
	Kind       string
	Namespace  string        // what it works on, "" where that is a whole deployment
	Parameters bson.Document // of the kind; nil: none
	Windows    schedule.Windows
	MaxRun     time.Duration // it may run so long in a window or, without windows, in a pass; 0: no limit
	StopFile   string        // while there is such a file on the machine that would run it, no step begins; "": none
	Priority   int           // where jobs wait for one another, one of priority 2 has twice the time of one of priority 1; 0: 1
	Every      time.Duration // from the begin of a pass to that of the next; 0: it has one pass; EachWindow
	Limits     Limits
	Retries    int // so many failures of one step in a row end the job until somebody resumes it; 0: it is tried for ever
}

// EachWindow, as Every, lets a pass begin in every window.
const EachWindow time.Duration = -1

// MaxPriority is the greatest priority.
const MaxPriority = 100

// Kind makes the job of a Spec, for one pass or what is left of one.
type Kind func(Spec) (Job, error)

// Tag is the comment of the commands that a job sends.
func (s *Spec) Tag() string { return "oxbow:job:" + s.ID }

// print is equal for two specifications of which one's checkpoint is good for the other.
func (s *Spec) print() string { return printOf(s.Kind, s.Namespace, s.Parameters) }

func (s *storedSpec) print() string { return printOf(s.Kind, s.Namespace, s.Parameters) }

func printOf(kind, namespace string, parameters []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %x", kind, namespace, parameters)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// storedSpec is a Spec as it is stored.
type storedSpec struct {
	Kind       string     `bson:"kind"`
	Namespace  string     `bson:"namespace"`
	Parameters driver.Raw `bson:"parameters,omitempty"`
	Windows    []string   `bson:"windows"`
	MaxRun     int64      `bson:"maxRun"` // milliseconds
	StopFile   string     `bson:"stopFile"`
	Priority   int        `bson:"priority"`
	Every      int64      `bson:"every"` // milliseconds; -1: EachWindow
	Limits     Limits     `bson:"limits"`
	Retries    int        `bson:"retries"`
}

func (s *Spec) stored() storedSpec {
	every := s.Every.Milliseconds()
	if s.Every == EachWindow {
		every = -1
	}
	return storedSpec{
		Kind: s.Kind, Namespace: s.Namespace, Parameters: driver.Raw(s.Parameters), Windows: s.Windows.Texts(), MaxRun: s.MaxRun.Milliseconds(),
		StopFile: s.StopFile, Priority: s.Priority, Every: every, Limits: s.Limits, Retries: s.Retries,
	}
}

// next returns when the pass after one that began is to begin; false if there is none.
func (s *Spec) next(begun time.Time) (time.Time, bool) {
	switch {
	case s.Every > 0:
		return begun.Add(s.Every), true
	case s.Every == EachWindow:
		return s.Windows.Next(begun)
	}
	return time.Time{}, false
}

// same reports whether two specifications are equal.
func (s *Spec) same(o *Spec) bool { return s.ID == o.ID && reflect.DeepEqual(s.stored(), o.stored()) }

func (s *Spec) weight() int { return min(max(1, s.Priority), MaxPriority) }

// stopFileOn says that there is the job's stop file on a host, this one, or that there may be, or "".
func (s *Spec) stopFileOn(host string) string {
	if s.StopFile == "" {
		return ""
	}
	_, err := os.Stat(s.StopFile)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return ""
	case err != nil: // who can't see does not go on
		return fmt.Sprintf("whether there is the stop file on %s is not known: %v", host, err)
	}
	return "there is the stop file " + s.StopFile + " on " + host
}
