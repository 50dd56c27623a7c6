package throttle

import (
	"math/bits"
	"sync/atomic"
	"time"

	"oxbow/internal/mongoerr"
)

// Window counts how long commands took in the last seconds. Safe for concurrent use; noting a time takes no lock.
type Window struct {
	start time.Time
	slots [slots]slot
}

// A slot has the times of one second. They are counted in steps of a thirty-second of a power of two, so to 3 %.
const (
	slots   = 32
	steps   = 32
	octaves = 38 // of nanoseconds: up to 4 minutes

	stepBits = 5 // of steps
)

type slot struct {
	second atomic.Int64 // since start; -1: it has none
	counts [steps * octaves]atomic.Uint32
}

// NewWindow returns an empty window.
func NewWindow() *Window {
	w := &Window{start: time.Now()}
	for i := range w.slots {
		w.slots[i].second.Store(-1)
	}
	return w
}

// foreground are the commands whose time an application feels: those that neither wait for something to happen nor run as long as they are meant to.
var foreground = map[string]bool{"find": true, "insert": true, "update": true, "delete": true, "findAndModify": true, "count": true, "distinct": true}

// Command notes a command of a client, if it is one of the foreground's.
func (w *Window) Command(name string, took time.Duration, _ mongoerr.Code) {
	if foreground[name] {
		w.Note(time.Now(), took)
	}
}

// Note counts a time that ended now. (Of those that are counted while a slot begins anew some may be lost.)
func (w *Window) Note(now time.Time, took time.Duration) {
	second := int64(now.Sub(w.start) / time.Second)
	s := &w.slots[second%slots]
	if was := s.second.Load(); was != second && s.second.CompareAndSwap(was, second) {
		for i := range s.counts {
			s.counts[i].Store(0)
		}
	}
	s.counts[stepOf(took)].Add(1)
}

// stepOf is the step that a time is counted in.
func stepOf(took time.Duration) int {
	n := uint64(max(took, steps))
	octave := bits.Len64(n) - 1
	return min(octave*steps+int(n>>(octave-stepBits)&(steps-1)), steps*octaves-1)
}

// endOf is the longest time of a step.
func endOf(step int) time.Duration {
	octave := step / steps
	return time.Duration((uint64(steps)|uint64(step%steps))+1) << (octave - stepBits)
}

// Quantile is the time that a share of the last seconds' commands stayed within, and how many there were.
func (w *Window) Quantile(now time.Time, last time.Duration, share float64) (time.Duration, int) {
	second := int64(now.Sub(w.start) / time.Second)
	oldest := second - int64(last/time.Second)
	var counts [steps * octaves]int
	n := 0
	for i := range w.slots {
		s := &w.slots[i]
		if at := s.second.Load(); at <= oldest || at > second {
			continue
		}
		for j := range s.counts {
			c := int(s.counts[j].Load())
			counts[j] += c
			n += c
		}
	}
	rank := int(float64(n) * share)
	for j, c := range counts {
		if rank -= c; rank < 0 {
			return endOf(j), n
		}
	}
	return 0, 0
}
