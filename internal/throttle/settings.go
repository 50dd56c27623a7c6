package throttle

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Settings are the thresholds of all probes. The zero value has the defaults; Parse reads others. They are not changed: With returns new ones.
type Settings struct {
	thresholds map[string]Threshold // those that differ from the defaults
	floor      time.Duration        // 0: the default
	ignored    []string
}

// Threshold is where a probe begins to slow, and where it stops. In between the share falls evenly.
type Threshold struct {
	Slow, Stop float64 // seconds, shares of 1, or a number, as the probe has it
	Relative   bool    // of a time: a multiple of what is usual
	Off        bool
}

// The names of the probes.
const (
	Latency  = "latency"
	Canary   = "canary"
	Lag      = "lag"
	Oplog    = "oplog"
	Queue    = "queue"
	Tickets  = "tickets"
	Dirty    = "dirty"
	Used     = "used"
	Disk     = "disk"
	CPU      = "cpu"
	Majority = "majority"
	Primary  = "primary"
)

// defaultFloor is the time below which no latency is too long, whatever is usual.
const defaultFloor = 2 * time.Millisecond

// kind is what a probe's thresholds are measured in.
type kind int

const (
	times   kind = iota // seconds, or a multiple of what is usual
	seconds             // seconds
	counts
	shares
	bare // it has none, and can only be turned off
)

// spec is a probe's kind and its default. In the order of Names.
type spec struct {
	name  string
	kind  kind
	above bool // it is well above its thresholds, not below
	by    Threshold
}

// specs are all probes. docs/throttle.md has the reason for each default.
var specs = []spec{
	{Primary, bare, false, Threshold{}},
	{Majority, bare, false, Threshold{}},
	{Lag, seconds, false, Threshold{Slow: 2, Stop: 10}},
	{Oplog, seconds, true, Threshold{Slow: 3 * 3600, Stop: 3600}},
	{Latency, times, false, Threshold{Slow: 1.1, Stop: 1.5, Relative: true}},
	{Canary, times, false, Threshold{Slow: 3, Stop: 10, Relative: true}},
	{Queue, counts, false, Threshold{Slow: 8, Stop: 64}},
	{Tickets, shares, true, Threshold{Slow: .5, Stop: .1}},
	{Dirty, shares, false, Threshold{Slow: .1, Stop: .2}},
	{Used, shares, false, Threshold{Slow: .85, Stop: .95}},
	{Disk, shares, true, Threshold{Slow: .15, Stop: .02}},
	{CPU, shares, false, Threshold{Slow: .8, Stop: .95}},
}

// Names are the names of all probes, in the order in which a reason is looked for.
func Names() []string {
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = s.name
	}
	return names
}

func specOf(name string) (*spec, bool) {
	i := slices.IndexFunc(specs, func(s spec) bool { return s.name == name })
	if i < 0 {
		return nil, false
	}
	return &specs[i], true
}

// Of returns a probe's thresholds.
func (s Settings) Of(probe string) Threshold {
	if t, ok := s.thresholds[probe]; ok {
		return t
	}
	if spec, ok := specOf(probe); ok {
		return spec.by
	}
	return Threshold{}
}

// Floor is the time below which no latency is too long.
func (s Settings) Floor() time.Duration {
	if s.floor == 0 {
		return defaultFloor
	}
	return s.floor
}

// Ignores reports whether a member is not looked at.
func (s Settings) Ignores(host string) bool { return slices.Contains(s.ignored, host) }

// Parse reads settings: terms with spaces or commas between them.
//
//	lag<2s..10s        slow from 2 s, stop at 10 s
//	lag<10s            stop at 10 s, and slow from a share of it, as the default has it
//	latency<1.25x..2x  multiples of what is usual; latency<20ms..80ms is outright
//	oplog>2h..30m      these stop below: oplog, tickets, disk
//	dirty<10%..20%
//	cpu=off            any probe
//	floor=5ms          no latency below is too long
//	ignore=HOST:PORT   a member that is not looked at; any number of times
func Parse(text string) (Settings, error) { return Settings{}.With(text) }

// With returns the settings with terms of Parse's in place of their own.
func (s Settings) With(text string) (Settings, error) {
	out := Settings{thresholds: maps.Clone(s.thresholds), floor: s.floor, ignored: slices.Clone(s.ignored)}
	if out.thresholds == nil {
		out.thresholds = map[string]Threshold{}
	}
	for _, term := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		if err := out.take(term); err != nil {
			return s, fmt.Errorf("%q: %w", term, err)
		}
	}
	return out, nil
}

// take takes one term.
func (s *Settings) take(term string) error {
	at := strings.IndexAny(term, "<>=")
	if at < 0 {
		return errors.New("write NAME<SLOW..STOP, NAME>SLOW..STOP or NAME=off")
	}
	name, sign, value := term[:at], term[at], term[at+1:]
	switch {
	case sign == '=' && name == "floor":
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return errors.New("floor is a duration above 0, such as 2ms")
		}
		s.floor = d
		return nil
	case sign == '=' && name == "ignore":
		if value == "" {
			return errors.New("ignore names a member")
		}
		s.ignored = append(s.ignored, value)
		return nil
	}
	spec, ok := specOf(name)
	if !ok {
		return fmt.Errorf("no probe has this name: there are %s, and floor and ignore", strings.Join(Names(), ", "))
	}
	if sign == '=' {
		if value != "off" {
			return errors.New("only off can stand behind =")
		}
		s.thresholds[name] = Threshold{Off: true}
		return nil
	}
	t, err := spec.parse(sign, value)
	if err != nil {
		return err
	}
	s.thresholds[name] = t
	return nil
}

// parse reads SLOW..STOP, or STOP alone.
func (s *spec) parse(sign byte, text string) (Threshold, error) {
	switch {
	case s.kind == bare:
		return Threshold{}, errors.New("it has no thresholds: write NAME=off or leave it out")
	case s.above != (sign == '>'):
		return Threshold{}, fmt.Errorf("write %s%c…", s.name, map[bool]byte{false: '<', true: '>'}[s.above])
	}
	slow, stop, both := strings.Cut(text, "..")
	if !both {
		slow, stop = "", slow
	}
	var t Threshold
	var err error
	if t.Stop, t.Relative, err = s.value(stop); err != nil {
		return Threshold{}, err
	}
	if both {
		var relative bool
		if t.Slow, relative, err = s.value(slow); err != nil {
			return Threshold{}, err
		}
		if relative != t.Relative {
			return Threshold{}, errors.New("both are times, or both multiples")
		}
	} else {
		t.Slow = s.slowFor(t)
	}
	if t.Slow == t.Stop || (t.Slow > t.Stop) != s.above {
		return Threshold{}, errors.New("it has to slow before it stops")
	}
	return t, nil
}

// slowFor is where a probe slows that is told only where to stop: the default's proportion. Of multiples it is that of what is above the usual.
func (s *spec) slowFor(t Threshold) float64 {
	if t.Relative {
		return 1 + (t.Stop-1)*(s.by.Slow-1)/(s.by.Stop-1)
	}
	if s.by.Relative {
		return t.Stop / 2
	}
	return t.Stop * s.by.Slow / s.by.Stop
}

// value reads one figure.
func (s *spec) value(text string) (value float64, relative bool, err error) {
	switch s.kind {
	case times, seconds:
		if multiple, ok := strings.CutSuffix(text, "x"); ok && s.kind == times {
			value, err = strconv.ParseFloat(multiple, 64)
			if err != nil || !(value > 1) || value > 1e6 {
				return 0, false, errors.New("a multiple of what is usual is above 1, such as 1.25x")
			}
			return value, true, nil
		}
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return 0, false, errors.New("it is measured in time, such as 10s")
		}
		return d.Seconds(), false, nil
	case shares:
		percent, ok := strings.CutSuffix(text, "%")
		value, err = strconv.ParseFloat(percent, 64)
		if !ok || err != nil || !(value >= 0 && value <= 100) {
			return 0, false, errors.New("it is measured in percent, such as 15%")
		}
		return value / 100, false, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, false, errors.New("it is a number")
	}
	return float64(n), false, nil
}

// String is the settings as Parse reads them: what differs from the defaults.
func (s Settings) String() string {
	var terms []string
	for i := range specs {
		if t, ok := s.thresholds[specs[i].name]; ok {
			terms = append(terms, specs[i].term(t))
		}
	}
	if s.floor != 0 {
		terms = append(terms, "floor="+s.floor.String())
	}
	for _, host := range s.ignored {
		terms = append(terms, "ignore="+host)
	}
	return strings.Join(terms, " ")
}

// term is a probe's thresholds as Parse reads them.
func (s *spec) term(t Threshold) string {
	if t.Off || s.kind == bare {
		return s.name + "=off"
	}
	sign := "<"
	if s.above {
		sign = ">"
	}
	return s.name + sign + s.format(t.Slow, t.Relative) + ".." + s.format(t.Stop, t.Relative)
}

// format writes a figure as it is shown and read.
func (s *spec) format(value float64, relative bool) string {
	switch {
	case relative:
		return strconv.FormatFloat(value, 'g', 4, 64) + "x"
	case s.kind == shares:
		return strconv.FormatFloat(value*100, 'f', -1, 64) + "%"
	case s.kind == counts:
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return round(time.Duration(value * float64(time.Second))).String()
}

// round leaves a duration three digits or so.
func round(d time.Duration) time.Duration {
	switch {
	case d >= 100*time.Second:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}

// Live are settings that can be changed while probes read them.
type Live struct{ now atomic.Pointer[Settings] }

// NewLive returns settings to begin with.
func NewLive(s Settings) *Live {
	l := &Live{}
	l.now.Store(&s)
	return l
}

// Load returns the settings now.
func (l *Live) Load() Settings { return *l.now.Load() }

// Store changes them.
func (l *Live) Store(s Settings) { l.now.Store(&s) }
