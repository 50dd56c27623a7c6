package throttle_test

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/deployment"
	"oxbow/internal/deployment/scripted"
	"oxbow/internal/maintain"
	"oxbow/internal/throttle"
)

// wantVerdict checks a verdict's state, whose it is, and a part of its reason.
func wantVerdict(t *testing.T, what string, v throttle.Verdict, state throttle.State, probe, reason string) {
	t.Helper()
	if v.State != state || v.Probe != probe || !strings.Contains(v.Reason, reason) {
		t.Errorf("%s: %v of %q, not %v of %q with %q", what, v, v.Probe, state, probe, reason)
	}
}

// found returns what a probe found last.
func found(th *throttle.Throttle, probe string) throttle.Finding {
	for _, f := range th.Findings() {
		if f.Probe == probe {
			return f
		}
	}
	return throttle.Finding{}
}

// TestSilence has the primary take commands and answer none: it stops within 2 s, and goes on when there are answers.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := three()
		th := started(t, set, throttle.On{})
		set.Change(func() { set.Members[0].Silent = true })
		time.Sleep(within)
		if v := th.Verdict(); v.State != throttle.Stop || !strings.Contains(v.Reason, "failed: no answer within 1s") {
			t.Errorf("%v", v)
		}
		set.Change(func() { set.Members[0].Silent = false })
		time.Sleep(within)
		wantVerdict(t, "with answers", th.Verdict(), throttle.Slow, throttle.Ramp, "the pace rises again, after: ")
	})
}

// stuck is a probe that never comes back, whatever its context says.
type stuck struct{ until chan struct{} }

func (stuck) Name() string { return throttle.CPU }

func (s stuck) Look(context.Context) (throttle.Verdict, error) {
	<-s.until
	return throttle.Verdict{State: throttle.Go, Share: 1}, nil
}

// TestLateProbe has a probe hang: its last finding is not believed for long.
func TestLateProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stuck{make(chan struct{}, 1)}
		th := throttle.New(throttle.Options{Probes: []throttle.Probe{s}})
		run(t, th)
		time.Sleep(time.Second)
		wantVerdict(t, "before the first look is over", th.Verdict(), throttle.Stop, throttle.CPU, "has not looked yet")
		s.until <- struct{}{}
		time.Sleep(time.Second)
		wantVerdict(t, "after one look", th.Verdict(), throttle.Slow, throttle.Ramp, "the pace rises again, after: ")
		time.Sleep(within)
		wantVerdict(t, "without another", th.Verdict(), throttle.Stop, throttle.CPU, "is late")
		close(s.until)
	})
}

// TestTotals counts how long a probe has stopped.
func TestTotals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := three()
		th := started(t, set, throttle.On{})
		set.Change(func() { set.Members[1].Lag = time.Minute })
		time.Sleep(30 * time.Second)
		set.Change(func() { set.Members[1].Lag = 6 * time.Second })
		time.Sleep(30 * time.Second)
		lag := th.Totals()[throttle.Lag]
		if lag.Stop < 29*time.Second || lag.Stop > 31*time.Second || lag.Slow < 29*time.Second || lag.Slow > 31*time.Second {
			t.Errorf("%+v", lag)
		}
	})
}

// traffic is an application whose commands take what a test says.
type traffic struct {
	mu   sync.Mutex
	took time.Duration
	n    int
}

func (s *traffic) Quantile(time.Time, time.Duration, float64) (time.Duration, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.took, s.n
}

func (s *traffic) is(took time.Duration, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took, s.n = took, n
}

// work has a job send all the time, until the test ends.
func work(t *testing.T, p *throttle.Pace) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for p.Wait(ctx, 300, 0) == nil {
			time.Sleep(100 * time.Millisecond)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &traffic{took: 10 * time.Millisecond, n: 1000}
		th := started(t, three(), throttle.On{Foreground: s})
		work(t, th.Pace(maintain.Limits{Documents: 1000}))
		time.Sleep(time.Minute)
		wantVerdict(t, "as usual", th.Verdict(), throttle.Go, "", "")
		s.is(12*time.Millisecond, 1000)
		time.Sleep(within)
		wantVerdict(t, "a fifth more", th.Verdict(), throttle.Slow, throttle.Latency, "the p99 of the application's commands is 12ms, and usual is 10ms (slow from 1.1x, stop at 1.5x)")
		time.Sleep(20 * time.Minute) // what lasts while the job runs is not taken for usual
		wantVerdict(t, "for long", th.Verdict(), throttle.Slow, throttle.Latency, "usual is 10ms")
		s.is(16*time.Millisecond, 1000)
		time.Sleep(within)
		wantVerdict(t, "more than half more", th.Verdict(), throttle.Stop, throttle.Latency, "is 16ms")
		// It lasts though the job has stopped: so it is not the job's doing, and becomes the usual.
		time.Sleep(2 * time.Minute)
		wantVerdict(t, "without the job's doing", th.Verdict(), throttle.Go, "", "")
		s.is(10*time.Millisecond, 5)
		time.Sleep(within)
		if f := found(th, throttle.Latency); f.Absent != "too little traffic to tell: 5 commands in 20s" {
			t.Errorf("%+v", f)
		}
		settings, _ := throttle.Parse("latency<5ms..20ms")
		th.SetSettings(settings)
		s.is(12*time.Millisecond, 1000)
		time.Sleep(within)
		wantVerdict(t, "outright", th.Verdict(), throttle.Slow, throttle.Latency, "is 12ms (slow from 5ms, stop at 20ms)")
	})
}

// TestUsualIsMeasured has traffic begin while a job runs: it stops for as long as it takes to see what is usual; and again when that is old.
func TestUsualIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &traffic{}
		th := started(t, three(), throttle.On{Foreground: s})
		work(t, th.Pace(maintain.Limits{Documents: 1000}))
		time.Sleep(time.Minute)
		wantVerdict(t, "without traffic", th.Verdict(), throttle.Go, "", "")
		s.is(8*time.Millisecond, 1000)
		time.Sleep(within)
		wantVerdict(t, "with some", th.Verdict(), throttle.Stop, throttle.Latency, "what is usual is not known yet")
		time.Sleep(40 * time.Second)
		wantVerdict(t, "measured", th.Verdict(), throttle.Go, "", "")
		s.is(time.Millisecond, 1000)
		time.Sleep(59 * time.Minute)
		wantVerdict(t, "for an hour", th.Verdict(), throttle.Go, "", "")
		stopped := 0
		for range 600 {
			time.Sleep(time.Second)
			if th.Verdict().State == throttle.Stop {
				stopped++
			}
		}
		if stopped < 20 || stopped > 32 {
			t.Errorf("it stopped for %d s to measure again", stopped)
		}
		// 1.9 ms are almost twice as much as now is usual, but below the floor.
		s.is(1900*time.Microsecond, 1000)
		time.Sleep(within)
		wantVerdict(t, "below the floor", th.Verdict(), throttle.Go, "", "")
	})
}

// server answers updates and finds after a time.
type server struct {
	mu    sync.Mutex
	takes time.Duration
	err   string
	names map[string]int
}

func (s *server) Run(_ context.Context, req *backend.Request) (bson.Document, error) {
	name, _, _ := bson.First(req.Body)
	s.mu.Lock()
	takes, err := s.takes, s.err
	s.names[name]++
	s.mu.Unlock()
	time.Sleep(takes)
	reply := driver.D{{Key: "n", Value: 1}, {Key: "ok", Value: 1.0}}
	if err != "" && name == "update" {
		reply = append(driver.D{{Key: "writeErrors", Value: driver.A{driver.D{{Key: "index", Value: 0}, {Key: "code", Value: 13}, {Key: "errmsg", Value: err}}}}}, reply...)
	}
	return driver.Marshal(reply)
}

func (*server) Abilities() backend.Abilities { return backend.Abilities{} }
func (*server) Close() error                 { return nil }

func (s *server) is(takes time.Duration, err string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takes, s.err = takes, err
}

// told counts the commands that came, by their names.
func (s *server) told() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.names)
}

func TestCanary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{takes: time.Millisecond, names: map[string]int{}}
		set := three()
		set.Members[0].Data = s
		t.Cleanup(func() {
			if names := s.told(); names["delete"] != 1 {
				t.Errorf("it left its document: %v", names)
			}
		})
		th := started(t, set, throttle.On{Canary: backend.Namespace{Database: "oxbow_jobs", Collection: "canary"}})
		work(t, th.Pace(maintain.Limits{Documents: 1000}))
		time.Sleep(time.Minute)
		wantVerdict(t, "as usual", th.Verdict(), throttle.Go, "", "")
		s.is(10*time.Millisecond, "")
		time.Sleep(10 * time.Second)
		wantVerdict(t, "slower", th.Verdict(), throttle.Slow, throttle.Canary, "the p90 of the canary is 10")
		s.is(10*time.Millisecond, "no rights here")
		time.Sleep(within)
		wantVerdict(t, "failing", th.Verdict(), throttle.Stop, throttle.Canary, "no rights here")
		if names := s.told(); names["update"] < 100 || names["find"] < 100 {
			t.Errorf("it sang %v", names)
		}
	})
}

// TestCPU has a server use up the processors of its machine.
func TestCPU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := three()
		begin, busy := time.Now(), 0.1
		set.Members[0].Data = bareServer{`{"system": {"numCores": 4}, "ok": 1}`}
		used := func() int64 { return int64(time.Since(begin).Seconds() * 4 * busy * 1e6) }
		th := started(t, set, throttle.On{})
		at := func(share float64) {
			begin, busy = time.Now(), share
			for range 400 {
				set.Change(func() {
					set.Members[0].Status = nested("extra_info", driver.D{{Key: "user_time_us", Value: used()}, {Key: "system_time_us", Value: int64(0)}})
				})
				time.Sleep(10 * time.Millisecond)
			}
		}
		at(.5)
		wantVerdict(t, "half", th.Verdict(), throttle.Go, "", "")
		at(.9)
		wantVerdict(t, "nine tenths", th.Verdict(), throttle.Slow, throttle.CPU, "the processors' use on rs-0:27017 is ")
		at(.99)
		wantVerdict(t, "all", th.Verdict(), throttle.Stop, throttle.CPU, "the processors' use on rs-0:27017 is ")
	})
}

// bareServer gives everything the same answer.
type bareServer struct{ reply string }

func (s bareServer) Run(context.Context, *backend.Request) (bson.Document, error) {
	var doc driver.D
	if err := driver.UnmarshalExtJSON([]byte(s.reply), false, &doc); err != nil {
		return nil, err
	}
	return driver.Marshal(doc)
}

func (bareServer) Abilities() backend.Abilities { return backend.Abilities{} }
func (bareServer) Close() error                 { return nil }

// TestWithoutRights has a user who may not ask for the set's status: members tell of themselves, so lag and majorities are seen all the same.
func TestWithoutRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := three()
		for _, m := range set.Members {
			m.Refuse = map[string]bool{"replSetGetStatus": true, "replSetGetConfig": true}
		}
		th := started(t, set, throttle.On{})
		wantVerdict(t, "at first", th.Verdict(), throttle.Go, "", "")
		set.Change(func() { set.Members[1].Lag = time.Minute })
		time.Sleep(within)
		wantVerdict(t, "with a lag", th.Verdict(), throttle.Stop, throttle.Lag, "the lag of rs-1:27017 is 1m0s")
		// The load, too, may be refused: that is a failure, and tells what to do about it.
		set.Change(func() { set.Members[1].Lag, set.Members[0].Refuse["serverStatus"] = 0, true })
		time.Sleep(within)
		wantVerdict(t, "without serverStatus", th.Verdict(), throttle.Stop, throttle.Oplog, "not authorized")
		settings, _ := throttle.Parse("oplog=off queue=off tickets=off dirty=off used=off cpu=off")
		th.SetSettings(settings)
		time.Sleep(within)
		if v := th.Verdict(); v.State == throttle.Stop {
			t.Errorf("with what can't be asked turned off: %v", v)
		}
	})
}

// TestShards has one shard of two lag.
func TestShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := scripted.New("a", &scripted.Member{State: "PRIMARY"}, &scripted.Member{State: "SECONDARY"})
		b := scripted.New("b", &scripted.Member{State: "PRIMARY"}, &scripted.Member{State: "SECONDARY"})
		d := deployment.Of("cluster", (&scripted.Cluster{Router: "router:27017", Shards: []*scripted.Set{a, b}}).Whole())
		defer d.Close()
		th := throttle.Of(throttle.On{Deployment: d})
		run(t, th)
		time.Sleep(12 * time.Second)
		wantVerdict(t, "at first", th.Verdict(), throttle.Go, "", "")
		b.Change(func() { b.Members[1].Lag = time.Minute })
		time.Sleep(within)
		wantVerdict(t, "with a lag", th.Verdict(), throttle.Stop, throttle.Lag, "b-1:27017")
		b.Change(func() { b.Members[1].Lag = 0 })
		a.Change(func() { a.Members[0].Status = queue(100) })
		time.Sleep(within)
		wantVerdict(t, "with a queue", th.Verdict(), throttle.Stop, throttle.Queue, "a-0:27017")
	})
}
