package catalog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// Several gateways on one catalog
//
// Where the catalog lies on a server, other gateways may work by it at the same time. What holds then, by which steps, and what was rejected, is
// docs/decisions/0013-several-gateways.md; in short:
//
//  1. One document (gatewaysStored) has the catalog's version and an entry for each gateway. A gateway's beat, about every second, is one
//     findAndModify of it: it renews the gateway's lease, says which version the gateway has seen, announces what it has changed by raising the version,
//     and brings back the whole document, hence all news. Because it is acknowledged by a majority, no deposed primary can answer it.
//  2. A gateway whose lease has run out by its own clock touches no partition and writes no catalog until it has renewed the lease and then read the
//     whole catalog again. It asks its clock where a command takes its snapshot and again before each send. The others end the lease of
//     a gateway whose entry they have watched, by their own clocks, not to change for longer than a lease; who has been ended comes back as another gateway.
//  3. Each change is made of the version that was read (see store) and is announced after it is stored. A gateway that has seen a version has
//     published a snapshot with all that was announced up to it.
//  4. A partition is Creating until every gateway has seen it, and is read from then on; only after that it becomes Active, is written to. So
//     no document is acknowledged that a find which begins afterwards, through whichever gateway, does not look for.
//  5. A partition's collection is dropped when every gateway has seen that it is Dropping, and has none of the inserts and upserts under way that it
//     sent before; of a gateway that was ended these may run for Longest after its lease. So none of them makes the collection again.
//  6. What a gateway began and did not finish is finished by any other, once its lease was ended.

// gatewaysStored is the catalog's collection of one document:
//
//	{_id: "catalog", version: int64, gateways: {<id>: {host: string, started, renewed: date, lease, longest: int64 (ms), beat, seen, drained: int64,
//	 ended: bool}}}
//
// version is raised after each change of the catalog. beat counts an entry's renewals: the dates are for people. drained is a version: all inserts and
// upserts that the gateway has under way were sent by what it had seen then, or later.
const gatewaysStored = "gateways"

// pause is the time between two beats, where a lease is not too short for it, and poll that of a gateway that waits for others.
const (
	pause = time.Second
	poll  = 100 * time.Millisecond
)

// membership is a gateway's part in a catalog that others may share. A nil one is that of a gateway that has the catalog for itself.
type membership struct {
	store   store
	lease   time.Duration
	longest time.Duration
	log     *slog.Logger
	reload  func(context.Context) error // reads the whole catalog and publishes it
	started time.Time

	renewed atomic.Pointer[time.Time] // when the last renewal was sent; nil: no lease
	sends   sends
	beating semaphore // one beat at a time, held over I/O

	mu sync.Mutex // not held over I/O
	membershipState
}

type membershipState struct {
	id     string // "": not among the gateways
	beat   int64
	seen   int64
	owed   int64 // changes that are stored and not announced
	stale  bool  // the catalog may have changed in a way that is not known here
	unread bool  // the last reading failed
	fresh  bool  // it was read after the lease had run out
	why    error // the last beat failed, or nil
	others map[string]watched
	latest int64     // the version that the last beat brought
	known  time.Time // when the beat was sent after which nothing was to be read any more
}

// watched is another gateway's entry, and since when it has not changed while we looked.
type watched struct {
	entry
	since time.Time
}

func newMembership(s store, lease, longest time.Duration, log *slog.Logger, reload func(context.Context) error) *membership {
	m := &membership{store: s, lease: lease, longest: longest, log: log, reload: reload, started: time.Now(), beating: newSemaphore()}
	m.known = m.started
	m.others = map[string]watched{}
	m.sends.current.Store(&epoch{longest: longest})
	return m
}

// self is this gateway's id.
func (m *membership) self() string {
	if m == nil {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.id
}

// check returns the error of a gateway without a lease.
func (m *membership) check() error {
	if m == nil || m.holds(time.Now()) {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	why := "it was not renewed in time"
	if m.why != nil {
		why = m.why.Error()
	}
	return mongoerr.New(mongoerr.PrimarySteppedDown, "this gateway has no lease on the catalog, and serves no collection with a layout until it has: %s", why)
}

// holds reports whether the lease lasts.
func (m *membership) holds(now time.Time) bool {
	renewed := m.renewed.Load()
	return renewed != nil && passed(*renewed, now) < m.lease
}

// passed is the time between two readings of this machine's clock: the greater one by monotonic and wall time, since the former stands still
// while some machines sleep.
func passed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// live reports whether another gateway is there and its lease was not ended.
func (m *membership) live(id string) bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w, there := m.others[id]
	return there && !w.ended
}

// announce tells the other gateways of what was stored, and returns a version that has it.
func (m *membership) announce(ctx context.Context) (int64, error) {
	if m == nil {
		return 0, nil
	}
	m.mu.Lock()
	m.owed++
	m.mu.Unlock()
	if err := m.heartbeat(ctx); err != nil {
		return 0, fmt.Errorf("tell the other gateways: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latest, nil
}

// distrust makes the next beat read the catalog again.
func (m *membership) distrust() {
	if m != nil {
		m.mu.Lock()
		m.stale = true
		m.mu.Unlock()
	}
}

// heartbeat renews the lease, announces what is owed, and reads the catalog again if there is news: then it tells so by another exchange.
func (m *membership) heartbeat(ctx context.Context) error {
	if err := m.beating.acquire(ctx); err != nil {
		return err
	}
	defer m.beating.release()
	limited, cancel := context.WithTimeoutCause(ctx, m.lease/2, mongoerr.New(mongoerr.NetworkTimeout, "the catalog does not answer"))
	defer cancel()
	err := m.beats(limited)
	if err != nil && ctx.Err() != nil {
		return err // whoever wanted this beat is gone: it says nothing of the catalog
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil && m.why == nil {
		m.log.Warn("the catalog's lease could not be renewed", "error", err)
	} else if err == nil && m.why != nil {
		m.log.Info("the catalog's lease is renewed", "gateway", m.id)
	}
	m.why = err
	return err
}

func (m *membership) beats(ctx context.Context) error {
	const most = 4 // news may come while news is read; what is left comes with the next beat
	for range most {
		if err := m.catchUp(ctx); err != nil {
			return err
		}
		version, news, err := m.exchange(ctx)
		if errors.Is(err, errLeftOut) {
			m.leftOut()
			continue
		}
		if err != nil || !news {
			return err
		}
		if err := m.read(ctx, version); err != nil {
			return err
		}
	}
	return nil
}

// catchUp makes this gateway one that may renew its lease: it is among the gateways, and can read the catalog. Beats of one that can't would let the others
// wait for it.
func (m *membership) catchUp(ctx context.Context) error {
	m.mu.Lock()
	id, unread, latest := m.id, m.unread, m.latest
	m.mu.Unlock()
	switch {
	case id == "":
		return m.join(ctx)
	case unread:
		return m.read(ctx, latest)
	}
	return nil
}

// read reads the catalog as it is at a version, or later.
func (m *membership) read(ctx context.Context, version int64) error {
	m.mu.Lock()
	m.stale = false
	m.mu.Unlock()
	err := m.reload(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unread = err != nil; err != nil {
		m.stale = true
		return fmt.Errorf("read the catalog again: %w", err)
	}
	m.seen, m.fresh = version, true
	m.sends.turn(version)
	return nil
}

// exchange is one findAndModify of the document. news says that the catalog is to be read again.
func (m *membership) exchange(ctx context.Context) (version int64, news bool, err error) {
	mine, owed := m.next()
	sent := time.Now()
	doc, err := m.store.renew(ctx, mine, owed)
	if err != nil {
		return 0, false, err
	}
	if doc == nil {
		return 0, false, errLeftOut
	}
	all, version, err := parseGateways(doc)
	if err != nil {
		return 0, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owed -= owed
	m.latest = version
	m.watch(all, time.Now())
	if version == m.seen+owed && owed > 0 && !m.stale {
		m.seen = version // nobody else has changed anything
		m.sends.turn(version)
	}
	if !m.holds(time.Now()) && !m.fresh {
		return version, true, nil
	}
	m.fresh = false
	m.renewed.Store(&sent)
	news = version > m.seen || m.stale
	if !news {
		m.known = sent
	}
	return version, news, nil
}

// next counts a beat and returns this gateway's entry with it, and how many changes are to be announced.
func (m *membership) next() (mine entry, owed int64) {
	drained := m.sends.drained()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.beat++
	return entry{id: m.id, beat: m.beat, seen: m.seen, drained: drained}, m.owed
}

// watch takes over the entries of the others. The caller holds mu.
func (m *membership) watch(all []entry, now time.Time) {
	others := map[string]watched{}
	for _, e := range all {
		if e.id == m.id {
			continue
		}
		since := now
		if known, ok := m.others[e.id]; ok && known.beat == e.beat {
			since = known.since
		}
		others[e.id] = watched{e, since}
	}
	m.others = others
}

// errLeftOut says that the gateway is not among the gateways any more: the others have ended its lease.
var errLeftOut = errors.New("the lease of this gateway was ended")

// leftOut forgets an id that is not among the gateways any more.
func (m *membership) leftOut() {
	m.renewed.Store(nil)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log.Warn("the other gateways have ended this one's lease: it takes part again under another id", "gateway", m.id)
	m.id, m.fresh = "", false
}

// join adds this gateway's entry, under an id that nobody had.
func (m *membership) join(ctx context.Context) error {
	var random [8]byte
	rand.Read(random[:])
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	mine := entry{id: fmt.Sprintf("g%x", random), host: fmt.Sprintf("%s/%d", host, os.Getpid()), beat: 1, lease: m.lease, longest: m.longest}
	doc, err := m.store.join(ctx, mine, m.started)
	if err != nil {
		return err
	}
	all, version, err := parseGateways(doc)
	if err != nil {
		return err
	}
	m.renewed.Store(nil)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.id, m.beat, m.seen, m.latest = mine.id, mine.beat, 0, version
	m.stale, m.unread, m.fresh = true, false, false
	m.watch(all, time.Now())
	return nil
}

// opened takes note that the catalog was read as it was when this gateway joined, or later.
func (m *membership) opened(ctx context.Context) error {
	m.mu.Lock()
	m.seen, m.stale, m.fresh = m.latest, false, true
	m.sends.turn(m.seen)
	m.mu.Unlock()
	return m.heartbeat(ctx)
}

// leave takes this gateway's entry away at its end, so that the others need not wait for its lease: unless inserts may still be running.
func (m *membership) leave(ctx context.Context) error {
	if err := m.beating.acquire(ctx); err != nil {
		return err
	}
	defer m.beating.release()
	m.renewed.Store(nil)
	id := m.self()
	if id == "" || !m.sends.empty() {
		return nil
	}
	return m.store.leave(ctx, id)
}

// seenBy reports whether every gateway that lives has seen a version.
func (m *membership) seenBy(version int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.others {
		if !w.ended && w.seen < version {
			return false
		}
	}
	return true
}

// drainedBy reports whether no gateway has inserts under way that it sent before it had seen a version.
func (m *membership) drainedBy(version int64) bool {
	if m == nil {
		return true
	}
	if m.sends.drained() < version {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.others {
		if w.drained < version {
			return false
		}
	}
	return m.seen >= version
}

// awaitSeen waits until every gateway that lives has seen a version.
func (m *membership) awaitSeen(ctx context.Context, version int64) error {
	if m == nil {
		return nil
	}
	return m.await(ctx, func() bool { return m.seenBy(version) })
}

// await beats until something is so. The lease of a gateway that does not answer is ended meanwhile.
func (m *membership) await(ctx context.Context, so func() bool) error {
	for !so() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the other gateways: %w", context.Cause(ctx))
		case <-time.After(poll):
		}
		if err := m.heartbeat(ctx); err != nil {
			return fmt.Errorf("wait for the other gateways: %w", err)
		}
		if err := m.endOthers(ctx); err != nil {
			return err
		}
	}
	return m.check()
}

// endOthers ends the leases of gateways that were watched not to renew them, and removes those of whom nothing can be under way any more. A part is added to
// each time, since clocks don't run alike.
func (m *membership) endOthers(ctx context.Context) error {
	now := time.Now()
	m.mu.Lock()
	var end, remove []entry
	for _, w := range m.others {
		still := now.Sub(w.since)
		switch {
		case !w.ended && still > w.lease+w.lease/8:
			end = append(end, w.entry)
		case w.ended && still > (w.lease+w.longest)+(w.lease+w.longest)/8:
			remove = append(remove, w.entry)
		}
	}
	m.mu.Unlock()
	var errs []error
	for _, e := range end {
		done, err := m.store.end(ctx, e)
		if done {
			m.log.Warn("the lease of a gateway was ended: it has not renewed it", "gateway", e.id, "host", e.host)
		}
		errs = append(errs, err)
	}
	for _, e := range remove {
		errs = append(errs, m.store.remove(ctx, e))
	}
	return errors.Join(errs...)
}

// entry is a gateway's in the document. Its lease and longest are by its own configuration.
type entry struct {
	id, host            string
	lease, longest      time.Duration
	beat, seen, drained int64
	ended               bool
}

// parseGateways reads the document.
func parseGateways(doc bson.Document) (all []entry, version int64, err error) {
	f := fields{doc: doc}
	version = f.whole("version")
	gateways, _ := bson.Get(doc, "gateways")
	for it := bson.Elements(gateways.Data); gateways.Data != nil && it.Next(); {
		g := fields{doc: it.Value().Data}
		all = append(all, entry{
			id: string(it.Key()), host: g.text("host"), lease: time.Duration(g.whole("lease")) * time.Millisecond,
			longest: time.Duration(g.whole("longest")) * time.Millisecond, beat: g.whole("beat"), seen: g.whole("seen"), drained: g.whole("drained"), ended: g.boolean("ended"),
		})
		f.missing += g.missing
	}
	if f.missing != "" {
		return nil, 0, fmt.Errorf("the catalog's record of its gateways lacks %s", f.missing)
	}
	return all, version, nil
}
