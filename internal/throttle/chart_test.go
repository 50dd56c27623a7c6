package throttle_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/deployment"
	"oxbow/internal/deployment/scripted"
	"oxbow/internal/throttle"
)

var rewrite = flag.Bool("rewrite", false, "write what the charts are into testdata in place of what was expected")

// scene is a scripted deployment, and what happens to it.
type scene struct {
	name   string
	terms  string // of the settings
	start  func() *scripted.Set
	events []event
	length time.Duration

	set *scripted.Set
}

// event happens at a time after the start.
type event struct {
	at   time.Duration
	what string
	do   func(s *scene, t *throttle.Throttle)
}

const second = time.Second

// three are a primary, a secondary and a hidden one that is delayed.
func three() *scripted.Set {
	return scripted.New("rs", &scripted.Member{State: "PRIMARY"}, &scripted.Member{State: "SECONDARY"}, &scripted.Member{State: "SECONDARY", Hidden: true, Delay: time.Hour, NoVote: true, Lag: time.Hour})
}

// change is an event that changes the set.
func change(at time.Duration, what string, do func(m []*scripted.Member)) event {
	return event{at, what, func(s *scene, _ *throttle.Throttle) { s.set.Change(func() { do(s.set.Members) }) }}
}

// terms is an event that changes the thresholds.
func terms(at time.Duration, text string) event {
	return event{at, "thresholds: " + text, func(_ *scene, t *throttle.Throttle) {
		s, err := t.Settings().With(text)
		if err != nil {
			panic(err)
		}
		t.SetSettings(s)
	}}
}

func nested(path string, value any) driver.D {
	keys := strings.Split(path, "/")
	for i := len(keys) - 1; i >= 0; i-- {
		value = driver.D{{Key: keys[i], Value: value}}
	}
	return value.(driver.D)
}

func queue(n int) driver.D { return nested("globalLock/currentQueue/total", n) }

func cache(key string, percent int) driver.D {
	return nested("wiredTiger/cache", driver.D{{Key: "maximum bytes configured", Value: int64(10000)}, {Key: key, Value: int64(100 * percent)}})
}

func tickets(version string, free int) driver.D {
	return append(driver.D{{Key: "version", Value: version}}, nested("wiredTiger/concurrentTransactions", driver.D{
		{Key: "read", Value: driver.D{{Key: "available", Value: 128}, {Key: "totalTickets", Value: 128}}},
		{Key: "write", Value: driver.D{{Key: "available", Value: free}, {Key: "totalTickets", Value: 128}}}})...)
}

func disk(free int) driver.D {
	return driver.D{{Key: "fsTotalSize", Value: 100e9}, {Key: "fsUsedSize", Value: 1e9 * float64(100-free)}}
}

var scenes = []scene{
	{name: "lag", length: 30 * second, start: three, events: []event{
		change(14*second, "rs-1 is 4 s behind", func(m []*scripted.Member) { m[1].Lag = 4 * second }),
		change(17*second, "12 s", func(m []*scripted.Member) { m[1].Lag = 12 * second }),
		change(20*second, "0 s", func(m []*scripted.Member) { m[1].Lag = 0 }),
	}},
	{name: "delayed", length: 24 * second, start: three, events: []event{
		change(13*second, "rs-2, delayed by an hour, is 5 s more behind", func(m []*scripted.Member) { m[2].Lag = time.Hour + 5*second }),
		change(16*second, "30 s more", func(m []*scripted.Member) { m[2].Lag = time.Hour + 30*second }),
		terms(19*second, "ignore=rs-2:27017"),
	}},
	{name: "away", length: 34 * second, start: func() *scripted.Set {
		return scripted.New("rs", &scripted.Member{State: "PRIMARY"}, &scripted.Member{State: "SECONDARY"}, &scripted.Member{State: "SECONDARY"})
	}, events: []event{
		change(13*second, "rs-1 is away: it goes on to fall behind", func(m []*scripted.Member) { m[1].Down = true }),
		change(27*second, "and back", func(m []*scripted.Member) { m[1].Down = false }),
	}},
	{name: "arbiter", length: 24 * second, start: func() *scripted.Set {
		return scripted.New("rs", &scripted.Member{State: "PRIMARY"}, &scripted.Member{State: "SECONDARY"}, &scripted.Member{State: "ARBITER"})
	}, events: []event{
		change(13*second, "rs-1 is away: a primary is left, and no majority that confirms", func(m []*scripted.Member) { m[1].Down = true }),
		change(18*second, "and back", func(m []*scripted.Member) { m[1].Down = false }),
	}},
	{name: "delayedmajority", length: 20 * second, start: func() *scripted.Set {
		return scripted.New("rs", &scripted.Member{State: "PRIMARY"}, &scripted.Member{State: "SECONDARY"}, &scripted.Member{State: "SECONDARY", Hidden: true, Delay: time.Hour, Lag: time.Hour})
	}, events: []event{
		change(13*second, "rs-1 restarts: the delayed member would have to confirm", func(m []*scripted.Member) { m[1].State = "RECOVERING" }),
		change(16*second, "and is back", func(m []*scripted.Member) { m[1].State = "SECONDARY" }),
	}},
	{name: "primary", length: 34 * second, start: three, events: []event{
		change(13*second, "rs-0 steps down", func(m []*scripted.Member) { m[0].State = "SECONDARY" }),
		{16 * second, "rs-1 is elected; rs-0 is 8 s behind", func(s *scene, _ *throttle.Throttle) {
			s.set.Elect(s.set.Members[1])
			s.set.Change(func() { s.set.Members[0].Lag = 8 * second })
		}},
		change(21*second, "rs-0 has caught up", func(m []*scripted.Member) { m[0].Lag = 0 }),
	}},
	{name: "oplog", length: 26 * second, start: three, events: []event{
		{13 * second, "the oplog spans 3 h, of which the delayed member needs one", func(s *scene, _ *throttle.Throttle) { s.set.Change(func() { s.set.Oplog = 3 * time.Hour }) }},
		{16 * second, "90 min", func(s *scene, _ *throttle.Throttle) { s.set.Change(func() { s.set.Oplog = 90 * time.Minute }) }},
		{19 * second, "it had been made larger, and is not full yet", func(s *scene, _ *throttle.Throttle) { s.set.Change(func() { s.set.Filling = true }) }},
	}},
	{name: "queue", length: 26 * second, start: three, events: []event{
		change(13*second, "36 operations wait", func(m []*scripted.Member) { m[0].Status = queue(36) }),
		change(16*second, "200", func(m []*scripted.Member) { m[0].Status = queue(200) }),
		change(19*second, "0", func(m []*scripted.Member) { m[0].Status = queue(0) }),
	}},
	{name: "cache", length: 26 * second, start: three, events: []event{
		change(13*second, "15 % of a secondary's cache are dirty", func(m []*scripted.Member) { m[1].Status = cache("tracked dirty bytes in the cache", 15) }),
		change(16*second, "21 %", func(m []*scripted.Member) { m[1].Status = cache("tracked dirty bytes in the cache", 21) }),
		change(19*second, "3 %, but 94 % of the primary's are used", func(m []*scripted.Member) {
			m[1].Status, m[0].Status = cache("tracked dirty bytes in the cache", 3), cache("bytes currently in the cache", 94)
		}),
		change(22*second, "80 %", func(m []*scripted.Member) { m[0].Status = cache("bytes currently in the cache", 80) }),
	}},
	{name: "tickets", length: 24 * second, start: three, events: []event{
		change(13*second, "32 of 128 tickets are left", func(m []*scripted.Member) { m[0].Status = tickets("6.0.5", 32) }),
		change(16*second, "2", func(m []*scripted.Member) { m[0].Status = tickets("6.0.5", 2) }),
		change(19*second, "2, of a release in which that means nothing", func(m []*scripted.Member) { m[0].Status = tickets("7.0.1", 2) }),
	}},
	{name: "disk", length: 30 * second, start: three, events: []event{
		change(13*second, "6 % of a disk are free: hurry", func(m []*scripted.Member) { m[1].Disk = disk(6) }),
		change(20*second, "1 %", func(m []*scripted.Member) { m[1].Disk = disk(1) }),
		change(23*second, "6 %, and 30 operations wait", func(m []*scripted.Member) { m[1].Disk, m[0].Status = disk(6), queue(30) }),
	}},
	{name: "thresholds", length: 20 * second, start: three, terms: "lag<5s", events: []event{
		change(12*second, "rs-1 is 6 s behind", func(m []*scripted.Member) { m[1].Lag = 6 * second }),
		terms(14*second, "lag<4s..20s"),
		terms(17*second, "lag=off"),
	}},
}

// TestCharts compares what a throttle says, second by second, with the charts of testdata.
func TestCharts(t *testing.T) {
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { compare(t, s.name, s.chart(t)) })
		})
	}
}

// compare compares a chart with the one of testdata.
func compare(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("it is\n%s\nand not\n%s", got, want)
	}
}

// chart plays a scene.
func (s *scene) chart(t *testing.T) string {
	s.set = s.start()
	d := deployment.Of("rs", s.set.Whole())
	defer d.Close()
	settings, err := throttle.Parse(s.terms)
	if err != nil {
		t.Fatal(err)
	}
	th := throttle.Of(throttle.On{Deployment: d, Settings: settings})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		th.Run(ctx)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	var b strings.Builder
	time.Sleep(300 * time.Millisecond) // between a tick and a look, so that it does not matter which is first where both are due
	start, reason := time.Now(), ""
	events := s.events
	for time.Since(start) <= s.length {
		for len(events) > 0 && time.Since(start) >= events[0].at {
			fmt.Fprintf(&b, "       -- %s\n", events[0].what)
			events[0].do(s, th)
			events = events[1:]
		}
		v := th.Verdict()
		line := fmt.Sprintf("%4.0f s  %-4s |%s|", time.Since(start).Seconds(), v.State, bar(v.Share))
		if now := v.State.String() + withoutFigures(v.Reason); now != reason && v.Reason != "" {
			line += " " + v.Reason
			reason = now
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		time.Sleep(time.Second)
	}
	return b.String()
}

// withoutFigures leaves what distinguishes one reason from another.
func withoutFigures(reason string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("0123456789.hms", r) {
			return -1
		}
		return r
	}, reason)
}

// bar is a share of the full pace, of twice of which ten more are.
func bar(share float64) string {
	n := int(share*10 + .5)
	return strings.Repeat("#", min(n, 20)) + strings.Repeat(" ", max(0, 20-n))
}
