package ways

import (
	"context"
	"sync"
	"time"
)

// watch looks at a run every now and then.
type watch struct {
	contest *contest
	server  *server
	ask     chan chan moment
	stop    context.CancelFunc
	done    chan struct{}

	mu      sync.Mutex
	moments []moment
	began   time.Time // the way; zero: not yet
	phase   string
	entered time.Time
}

// moment is what a look found.
type moment struct {
	figures
	at       time.Time
	inserted int64 // by the foreground, acknowledged
	gone     int64
}

func startWatch(c *contest) *watch {
	w := &watch{contest: c, server: newServer(c.place), ask: make(chan chan moment), done: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	go w.loop(ctx)
	return w
}

func (w *watch) loop(ctx context.Context) {
	defer close(w.done)
	ticker := time.NewTicker(w.contest.options.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case answer := <-w.ask:
			answer <- w.look(ctx)
		case <-ticker.C:
			w.look(ctx)
		}
	}
}

// look takes a moment. What a server that does not answer would have told is not in it.
func (w *watch) look(ctx context.Context) moment {
	c := w.contest
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	m := moment{inserted: c.foreground.sum().inserted}
	n, err := c.place.count(ctx, c.data, nil)
	m.at = time.Now()
	if err == nil {
		m.gone = max(0, c.data.Documents+m.inserted-n)
		m.figures, err = w.server.look(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.moments) > 0 {
		m.gone = max(m.gone, w.moments[len(w.moments)-1].gone) // also where counting failed
	}
	if err == nil {
		w.moments = append(w.moments, m)
	}
	p := Progress{Way: c.way.Name, Phase: w.phase, Spent: time.Since(w.entered)}
	p.P99, _ = c.foreground.quantile(m.at, time.Second, .99)
	if w.phase == "run" {
		p.Done, p.Total = min(m.gone, c.data.Old()), c.data.Old()
	}
	c.tell(p)
	return m
}

// now takes a moment at once.
func (w *watch) now() moment {
	answer := make(chan moment, 1)
	select {
	case w.ask <- answer:
		return <-answer
	case <-w.done:
		return moment{}
	}
}

// enter says which phase has begun.
func (w *watch) enter(phase string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase, w.entered = phase, time.Now()
}

// begin says when the way began.
func (w *watch) begin(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began = at
}

func (w *watch) end() {
	w.stop()
	<-w.done
}

// samples are the moments without those of the warm-up, with the latencies between each and the one before.
func (w *watch) samples(f *foreground) []Sample {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.contest
	from := w.began.Add(-c.options.Idle)
	var all []Sample
	var first *moment
	came := int64(0) // before the way began
	for i := range w.moments {
		m := &w.moments[i]
		if m.at.Before(w.began) {
			came = m.inserted
		}
		if m.at.Before(from) {
			continue
		}
		if first == nil {
			first = m
		}
		s := Sample{At: m.at.Sub(w.began).Seconds(), Gone: min(m.gone, c.data.Old()), Disk: m.disk, Lag: m.lag}
		s.Backlog = c.data.Old() - s.Gone + max(0, m.inserted-came)
		if m.at.Before(w.began) {
			s.Backlog = c.data.Old()
		}
		if m.oplog != nil && first.oplog != nil {
			n := *m.oplog - *first.oplog
			s.Oplog = &n
		}
		since := from
		if i > 0 {
			since = w.moments[i-1].at
		}
		if p := f.phase(since, m.at); p.Calls > 0 {
			s.P99 = &p.P99
		}
		all = append(all, s)
	}
	return all
}
