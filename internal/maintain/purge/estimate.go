package purge

import (
	"fmt"
	"math"
	"time"
)

// Assumed rates, where none was measured, in documents a second. A removal that reads its documents from disk went at 250 to 500 a second where the
// strategies of this package come from, and 100 times as fast where they were in memory; MongoDB's TTL thread took 58 thousand in a pass of a minute.
const (
	ColdRate   = 300    // of one worker, where the collection and its indexes are larger than the cache, or that is not known
	CachedRate = 10_000 // of one worker, where they are not
	TTLRate    = 58_000 / 60
	PartTime   = time.Second // of one part that is dropped
)

// Assumptions is what an Estimate goes by.
type Assumptions struct {
	Workers  int           // of Ranges; 0: as many as the rate of arrival asks for, within mostWorkers
	Limit    float64       // documents a second at most; 0: none
	Measured float64       // documents a second that one worker was seen to take; 0: assumed
	Window   time.Duration // a day that Nightly has; 0: 8 h
}

// mostWorkers is how many workers are proposed: about 20 kept up with 400 thousand a minute where the strategies come from.
const mostWorkers = 20

// Estimate is what one strategy would come to.
type Estimate struct {
	Strategy Strategy      `json:"strategy"`
	Possible bool          `json:"possible"`
	Why      string        `json:"why,omitempty"` // it is not possible, or what there is to know
	Workers  int           `json:"workers,omitempty"`
	Rate     float64       `json:"rate"`      // documents a second, Unknown
	KeepsUp  *bool         `json:"keepsUp"`   // with what arrives; nil: not known
	Takes    time.Duration `json:"takeNanos"` // until what goes now is gone, Unknown
	Oplog    int64         `json:"oplogBytes"`
}

// Plan is what the strategies would come to, and the one to take.
type Plan struct {
	Estimates []Estimate `json:"estimates"`
	Winner    Strategy   `json:"winner"` // "": none is possible
	Reason    string     `json:"reason"`
	RateOf    string     `json:"rateOf"` // where the rates come from
}

// Weigh compares the strategies for a collection.
func Weigh(c *Collection, a Assumptions) *Plan {
	w := &weighing{c: c, a: a}
	p := &Plan{RateOf: w.one()}
	p.Estimates = []Estimate{w.drop(), w.slices(), w.ranges(), w.ids(), w.nightly(), w.ttl()}
	p.choose(c)
	return p
}

type weighing struct {
	c   *Collection
	a   Assumptions
	per float64 // documents a second of one worker
}

// one fixes the rate of one worker and says where it comes from.
func (w *weighing) one() string {
	switch c := w.c; {
	case w.a.Measured > 0:
		w.per = w.a.Measured
		return fmt.Sprintf("measured in a trial: %.0f documents a second by one worker", w.per)
	case c.Cache > 0 && c.Bytes >= 0 && c.IndexBytes >= 0 && c.Bytes+c.IndexBytes < c.Cache:
		w.per = CachedRate
		return fmt.Sprintf("assumed: %d documents a second by one worker, since the collection fits into the server's cache", CachedRate)
	case c.Cache > 0 && c.Bytes >= 0:
		w.per = ColdRate
		return fmt.Sprintf("assumed: %d documents a second by one worker, since the collection is larger than the server's cache", ColdRate)
	}
	w.per = ColdRate
	return fmt.Sprintf("assumed: %d documents a second by one worker, as where the collection is larger than the cache: how large that is is not known", ColdRate)
}

// at is the estimate of a strategy that deletes at a rate, for a share of the day.
func (w *weighing) at(s Strategy, rate, share float64) Estimate {
	if w.a.Limit > 0 {
		rate = min(rate, w.a.Limit)
	}
	e := Estimate{Strategy: s, Possible: true, Rate: rate, Takes: Unknown, Oplog: Unknown}
	if w.c.Matches >= 0 && rate > 0 {
		e.Takes = time.Duration(math.Min(float64(w.c.Matches)/(rate*share), 1e9) * float64(time.Second))
	}
	if w.c.Matches >= 0 && w.c.Entry >= 0 {
		e.Oplog = w.c.Matches * w.c.Entry
	}
	if w.c.Arrival >= 0 {
		keeps := rate*share >= w.c.Arrival
		e.KeepsUp = &keeps
	}
	return e
}

func not(s Strategy, why string) Estimate {
	return Estimate{Strategy: s, Why: why, Rate: Unknown, Takes: Unknown, Oplog: Unknown}
}

func (w *weighing) drop() Estimate {
	if len(w.c.Parts) == 0 {
		return not(Drop, "nothing is split by that time here: a time layout in a gateway, or collections named by their day with --parts")
	}
	due, documents, straddles := 0, int64(0), 0
	for _, p := range w.c.Parts {
		if p.Due {
			due++
			if documents += p.Documents; p.Documents < 0 {
				documents = math.MinInt64 / 2
			}
		}
	}
	for _, p := range w.c.Parts {
		if !p.Due {
			straddles++
			break
		}
	}
	keeps := true
	e := Estimate{Strategy: Drop, Possible: true, Rate: Unknown, KeepsUp: &keeps, Takes: time.Duration(due) * PartTime, Oplog: 0}
	e.Why = fmt.Sprintf("%d parts are over", due)
	if documents >= 0 {
		e.Why += fmt.Sprintf(", with %d documents", documents)
	}
	if straddles > 0 {
		e.Why += "; what lies before the cut in a part that is not over stays until it is"
	}
	return e
}

func (w *weighing) slices() Estimate {
	if w.c.Keyed == "" || w.c.TimeField == "" {
		return not(Slices, w.unordered())
	}
	return w.at(Slices, w.per, 1)
}

func (w *weighing) unordered() string {
	if w.c.Ordered == "" {
		return "it needs a time field"
	}
	return w.c.Ordered
}

// workers are as many as keep up with half as much again as arrives.
func (w *weighing) workers() int {
	if w.a.Workers > 0 {
		return w.a.Workers
	}
	return max(defaultWorkers, min(mostWorkers, int(math.Ceil(1.5*w.c.Arrival/w.per))))
}

func (w *weighing) ranges() Estimate {
	if w.c.Keyed == "" {
		return not(Ranges, w.unordered())
	}
	n := w.workers()
	e := w.at(Ranges, w.per*float64(n), 1)
	e.Workers = n
	return e
}

func (w *weighing) ids() Estimate {
	if w.c.Refused != "" {
		return not(IDs, w.c.Refused)
	}
	e := w.at(IDs, w.per, 1)
	e.Why = "what goes is read on a secondary where there is one"
	return e
}

func (w *weighing) nightly() Estimate {
	if w.c.Keyed == "" {
		return not(Nightly, w.unordered())
	}
	window := w.a.Window
	if window <= 0 {
		window = 8 * time.Hour
	}
	n := w.workers()
	e := w.at(Nightly, w.per*float64(n), window.Hours()/24)
	e.Workers = n
	e.Why = fmt.Sprintf("in %.3g hours a day", window.Hours())
	return e
}

func (w *weighing) ttl() Estimate {
	x := w.c.Expiry
	if x == nil {
		return not(TTL, "there is no TTL index; one expires dates only, by one thread, at no rate of anybody's choice")
	}
	e := w.at(TTL, TTLRate, 1)
	keeps := x.KeepsUp()
	e.KeepsUp = &keeps
	e.Why = fmt.Sprintf("index %s expires after %s", x.Index, x.After)
	if keeps {
		e.Why += ", and keeps up"
	} else {
		e.Why += fmt.Sprintf(", and is %s late", x.Late.Round(time.Second))
	}
	return e
}

// choose takes the first strategy that is possible and keeps up, in the order of how little it costs; where none keeps up, the fastest.
func (p *Plan) choose(c *Collection) {
	order := []Strategy{Drop, Slices, Ranges, IDs}
	for _, s := range order {
		e := p.Of(s)
		if e.Possible && e.KeepsUp != nil && *e.KeepsUp && !(s == Slices && (e.Takes < 0 || e.Takes > time.Hour)) {
			p.Winner, p.Reason = s, reasons[s]
			return
		}
	}
	for _, s := range []Strategy{Ranges, IDs} {
		e := p.Of(s)
		if !e.Possible {
			continue
		}
		p.Winner, p.Reason = s, reasons[s]
		if e.KeepsUp == nil {
			p.Reason += "; whether it keeps up is not known, since the rate of arrival is not"
		} else {
			p.Reason += "; it does not keep up with what arrives: split the collection by time, so that it can be dropped"
		}
		return
	}
	p.Reason = c.Refused
	if p.Reason == "" {
		p.Reason = c.Ordered
	}
}

// reasons say why a strategy is taken.
var reasons = map[Strategy]string{
	Drop:   "whole parts go, at no cost by document",
	Slices: "one worker keeps up, and disturbs least of those that delete",
	Ranges: "several workers share a key, each from where it was on",
	IDs:    "what goes has no order to cut, so it is exported and deleted by _id",
}

// Of is the estimate of a strategy.
func (p *Plan) Of(s Strategy) *Estimate {
	for i := range p.Estimates {
		if p.Estimates[i].Strategy == s {
			return &p.Estimates[i]
		}
	}
	return &Estimate{Strategy: s}
}
