package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/deployment"
	"oxbow/internal/deployment/scripted"
	"oxbow/internal/maintain"
	"oxbow/internal/mongoerr"
	"oxbow/internal/throttle"
)

// within is how soon everything that waits has to notice a change.
const within = 2 * time.Second

// run has a throttle run until the test ends.
func run(t *testing.T, th *throttle.Throttle) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		th.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// started returns a throttle on a set at its full pace.
func started(t *testing.T, set *scripted.Set, on throttle.On) *throttle.Throttle {
	t.Helper()
	d := deployment.Of("rs", set.Whole())
	t.Cleanup(func() { d.Close() })
	on.Deployment = d
	th := throttle.Of(on)
	run(t, th)
	time.Sleep(12 * time.Second)
	return th
}

// passed returns how many documents a job gets through in a time, in steps.
func passed(t *testing.T, p *throttle.Pace, step int, span time.Duration) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	n := 0
	for p.Wait(ctx, step, 0) == nil {
		n += step
	}
	return n
}

// wantAbout checks a number to a tenth.
func wantAbout(t *testing.T, what string, got, want int) {
	t.Helper()
	if math.Abs(float64(got-want)) > float64(want)/10 {
		t.Errorf("%s: %d, not about %d", what, got, want)
	}
}

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := three()
		th := started(t, set, throttle.On{})
		p := th.Pace(maintain.Limits{Documents: 1000})
		wantAbout(t, "at 1,000 a second", passed(t, p, 100, 10*time.Second), 10_000)
		p.Limit(maintain.Limits{Documents: 100})
		wantAbout(t, "at 100 a second, in steps of ten seconds", passed(t, p, 1000, 100*time.Second), 10_000)
		p.Limit(maintain.Limits{Documents: 1000, Bytes: 100 * throttle.DeleteEntry})
		wantAbout(t, "at the oplog bytes of 100 a second", passed(t, p, 100, 10*time.Second), 1000)
		set.Change(func() { set.Members[1].Lag = 6 * time.Second })
		p.Limit(maintain.Limits{Documents: 1000})
		time.Sleep(within)
		wantAbout(t, "at half of 1,000", passed(t, p, 100, 10*time.Second), 5000)
		if share := p.Share(); share != .5 {
			t.Errorf("share %v", share)
		}
	})
}

// TestWorkersShareAPace has four workers under one limit.
func TestWorkersShareAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := started(t, three(), throttle.On{}).Pace(maintain.Limits{Documents: 1000})
		var wait sync.WaitGroup
		var each [4]int
		for i := range each {
			wait.Go(func() { each[i] = passed(t, p, 50, 20*time.Second) })
		}
		wait.Wait()
		all := 0
		for i, n := range each {
			all += n
			if n < 4000 {
				t.Errorf("worker %d got %d", i, n)
			}
		}
		wantAbout(t, "all workers", all, 20_000)
	})
}

// TestWaitNotices has a step that waits, and changes that it has to notice in time.
func TestWaitNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := three()
		p := started(t, set, throttle.On{}).Pace(maintain.Limits{Documents: 10})
		if err := p.Wait(t.Context(), 10, 0); err != nil {
			t.Fatal(err)
		}
		waits := make(chan error, 1)
		wait := func(ctx context.Context, n int) { go func() { waits <- p.Wait(ctx, n, 0) }() }
		for _, c := range []struct {
			what        string
			set, change func()
		}{
			{"a lag that ends", func() { set.Change(func() { set.Members[1].Lag = time.Minute }) }, func() { set.Change(func() { set.Members[1].Lag = 0 }) }},
			{"a limit that is raised", func() { p.Limit(maintain.Limits{Documents: 1e-3}) }, func() { p.Limit(maintain.Limits{Documents: 1e6}) }},
		} {
			c.set()
			time.Sleep(within)
			wait(t.Context(), 100)
			time.Sleep(time.Minute)
			select {
			case <-waits:
				t.Fatalf("%s: the step went before", c.what)
			default:
			}
			c.change()
			time.Sleep(within + time.Second) // at a tenth of the pace a step of 100 may take a second
			p.Limit(maintain.Limits{Documents: 1e6})
			time.Sleep(within)
			select {
			case err := <-waits:
				if err != nil {
					t.Errorf("%s: %v", c.what, err)
				}
			default:
				t.Fatalf("%s was not noticed", c.what)
			}
		}
		// A step that had its turn soon does not get it when the verdict becomes stop.
		p.Limit(maintain.Limits{Documents: 10})
		wait(t.Context(), 50)
		time.Sleep(time.Second)
		set.Change(func() { set.Members[1].Lag = time.Minute })
		time.Sleep(time.Minute)
		select {
		case <-waits:
			t.Fatal("it went during a stop")
		default:
		}
		if v := p.Verdict(); v.State != throttle.Stop || v.Probe != throttle.Lag || p.Rate() != 0 {
			t.Errorf("%v, at %v", v, p.Rate())
		}
		set.Change(func() { set.Members[1].Lag = 0 })
		if err := <-waits; err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		wait(ctx, 1_000_000)
		time.Sleep(time.Second)
		cause := mongoerr.New(mongoerr.Interrupted, "the window is over")
		cancel(cause)
		if err := <-waits; !errors.Is(err, cause) {
			t.Errorf("a step whose context ends: %v", err)
		}
	})
}

// TestDropsGoOnWhenTheDiskIsFull compares the two paces of a full disk.
func TestDropsGoOnWhenTheDiskIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := three()
		th := started(t, set, throttle.On{})
		set.Change(func() { set.Members[0].Disk = disk(1) })
		time.Sleep(within)
		deletes, drops := th.Pace(maintain.Limits{}), th.DropPace(maintain.Limits{})
		if v := deletes.Verdict(); v.State != throttle.Stop || v.Probe != throttle.Disk {
			t.Errorf("deletes: %v", v)
		}
		if err := drops.Wait(t.Context(), 1, 0); err != nil {
			t.Errorf("drops: %v", err)
		}
		set.Change(func() { set.Members[1].Lag = time.Minute })
		time.Sleep(within)
		if v := drops.Verdict(); v.State != throttle.Stop || v.Probe != throttle.Lag {
			t.Errorf("drops with a lag: %v", v)
		}
	})
}

// full answers each write as a server does whose disk has no more room.
type full struct{ backend.Backend }

func (full) Run(context.Context, *backend.Request) (bson.Document, error) {
	return nil, mongoerr.New(mongoerr.OutOfDiskSpace, "no space left on device, writes are refused until there is")
}

// TestDropsGoOnWhenTheCanaryFindsNoRoom: a canary that can't be written says that the disk is full; that stops deletes, and not what makes room for it.
func TestDropsGoOnWhenTheCanaryFindsNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := three()
		set.Members[0].Data = full{}
		th := started(t, set, throttle.On{Canary: backend.Namespace{Database: "oxbow_jobs", Collection: "canary"}})
		deletes, drops := th.Pace(maintain.Limits{}), th.DropPace(maintain.Limits{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		waits := make(chan error, 1)
		go func() { // the canary sings while a job asks
			for {
				if err := deletes.Wait(ctx, 1, 0); err != nil {
					waits <- err
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
		}()
		time.Sleep(10 * time.Second)
		if v := deletes.Verdict(); v.State != throttle.Stop || !strings.Contains(v.Reason, "no space left") {
			t.Errorf("deletes: %v", v)
		}
		if err := drops.Wait(ctx, 1, 0); err != nil {
			t.Errorf("drops: %v: %v", err, drops.Verdict())
		}
		if err := <-waits; !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// plant is a deployment whose commands take the longer the more a job does: its usual 4 ms up to a rate that it bears, and then more.
type plant struct {
	mu    sync.Mutex
	bears float64
	sent  []float64 // documents in each 100 ms, the latest last
	at    time.Time
}

func (p *plant) note(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advanceLocked()
	p.sent[len(p.sent)-1] += float64(n)
}

func (p *plant) advanceLocked() {
	now := time.Now().Truncate(100 * time.Millisecond)
	if len(p.sent) == 0 || now.Sub(p.at) > time.Minute {
		p.sent, p.at = []float64{0}, now
	}
	for ; p.at.Before(now); p.at = p.at.Add(100 * time.Millisecond) {
		p.sent = append(p.sent, 0)
	}
}

// rate is the documents a second until some time ago, in a span before that.
func (p *plant) rate(ago, span time.Duration) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advanceLocked()
	end, n, sum := len(p.sent)-int(ago/(100*time.Millisecond)), int(span/(100*time.Millisecond)), 0.0
	for i := max(0, end-n); i < end; i++ {
		sum += p.sent[i]
	}
	return sum / span.Seconds()
}

// Quantile implements throttle.Source: a command takes as long as what was sent in the second before it makes it.
func (p *plant) Quantile(_ time.Time, last time.Duration, share float64) (time.Duration, int) {
	var took []time.Duration
	for ago := time.Duration(0); ago < last; ago += 100 * time.Millisecond {
		over := max(0, p.rate(ago, time.Second)/p.bears-1)
		took = append(took, time.Duration(4e6*(1+over)))
	}
	slices.Sort(took)
	return took[int(float64(len(took))*share)], 10 * len(took)
}

// TestSearch has a job without a limit find the pace that a deployment bears, one that falls meanwhile.
func TestSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := &plant{bears: 20_000}
		p := started(t, three(), throttle.On{Foreground: pl}).Pace(maintain.Limits{})
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				for p.Wait(ctx, 200, 0) == nil {
					pl.note(200)
					time.Sleep(20 * time.Millisecond) // so that four workers alone could do 40,000 a second
				}
			})
		}
		var b strings.Builder
		worst := time.Duration(0)
		time.Sleep(50 * time.Millisecond)
		for i := range 36 {
			if i == 18 {
				pl.mu.Lock()
				pl.bears = 8000
				pl.mu.Unlock()
				b.WriteString("        -- now the deployment bears 8,000 a second\n")
			}
			time.Sleep(5 * time.Second)
			took, _ := pl.Quantile(time.Now(), 5*time.Second, .99)
			if i > 9 && i < 18 || i > 23 {
				worst = max(worst, took)
			}
			fmt.Fprintf(&b, "%4d s  %6.0f/s %5.1f ms |%-40s|\n", 5*(i+1), pl.rate(0, 5*time.Second), took.Seconds()*1000, strings.Repeat("#", int(pl.rate(0, 5*time.Second)/1000+.5)))
		}
		cancel()
		wait.Wait()
		t.Log("\n" + b.String())
		if most := 6 * time.Millisecond; worst > most {
			t.Errorf("once the pace was found commands took up to %v: more than 1.5 of the usual 4 ms, where it stops", worst)
		}
		if r := pl.rate(0, time.Minute); r < 4000 {
			t.Errorf("a deployment that bears 8,000 a second got %.0f", r)
		}
	})
}
