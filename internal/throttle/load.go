package throttle

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/deployment"
	"oxbow/internal/mongoerr"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// load is what one server tells of its load (https://www.mongodb.com/docs/manual/reference/command/serverStatus/). Figures that it does not report are
// below zero.
type load struct {
	host    string
	at      time.Time
	version int // the release's first number; 0: not known

	queued      float64 // operations that wait for a lock or a ticket
	ticketsFree float64 // the lesser share of those for reads and for writes
	dirty, used float64 // shares of the cache
	cpu         float64 // seconds that the process has used
	first, last uint32  // seconds of the oplog's ends; 0: not reported
}

// statusCommand asks for what is looked at, and leaves out what costs the server most to tell.
var statusCommand = backend.Command("admin", func(dst []byte) []byte {
	dst = bsoncore.AppendInt32Element(dst, "serverStatus", 1)
	dst = bsoncore.AppendInt32Element(dst, "oplog", 1)
	for _, section := range [...]string{"repl", "metrics", "tcmalloc", "locks", "sharding", "transactions", "logicalSessionRecordCache", "security", "shardedIndexConsistency"} {
		dst = bsoncore.AppendInt32Element(dst, section, 0)
	}
	return dst
})

var bareStatusCommand = backend.Command("admin", func(dst []byte) []byte { return bsoncore.AppendInt32Element(dst, "serverStatus", 1) })

// secondaryPatience is how long a secondary has to tell its load, and secondaryRest for how long one is not asked again that did not. How far it is behind is seen
// without asking it; so it is no failure.
const (
	secondaryPatience = 400 * time.Millisecond
	secondaryRest     = 30 * time.Second
)

// readLoads returns the load of the servers with data: of the primary of each replica set, which has to answer, and of the secondaries that do; else of the
// one server.
func (v *view) readLoads(ctx context.Context) ([]load, error) {
	return v.loads.get(ctx, fresh, func(ctx context.Context) ([]load, error) {
		sets, err := v.sets.get(ctx, fresh, v.deployment.Sets)
		if err != nil {
			return nil, err
		}
		return ofServers(ctx, v, sets, v.readLoad)
	})
}

// ofServers asks the servers with data: the primaries, which have to answer, and the secondaries; where there are no replica sets the one server.
func ofServers[T any](ctx context.Context, v *view, sets []deployment.Set, ask func(ctx context.Context, b backend.Backend, host string) (T, error)) ([]T, error) {
	if len(sets) == 0 {
		one, err := ask(ctx, v.deployment.Whole(), v.deployment.Name())
		return []T{one}, err
	}
	var (
		wait  sync.WaitGroup
		mu    sync.Mutex
		all   []T
		first error
	)
	for i := range sets {
		for j := range sets[i].Members {
			m := &sets[i].Members[j]
			if !v.asksLoadOf(m) {
				continue
			}
			wait.Go(func() {
				one, err := askMember(ctx, v, m, ask)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					all = append(all, one)
				case m.State == deployment.Primary && first == nil:
					first = err
				}
			})
		}
	}
	wait.Wait()
	return all, first
}

// asksLoadOf reports whether a member is asked for its load.
func (v *view) asksLoadOf(m *deployment.Member) bool {
	if v.settings.Load().Ignores(m.Host) {
		return false
	}
	return m.State == deployment.Primary || m.State == deployment.Secondary && !v.machines.rests(m.Host)
}

// askMember asks one member; a secondary for a short time only.
func askMember[T any](ctx context.Context, v *view, m *deployment.Member, ask func(ctx context.Context, b backend.Backend, host string) (T, error)) (T, error) {
	if m.State == deployment.Secondary {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, secondaryPatience)
		defer cancel()
	}
	b, err := v.deployment.On(ctx, m.Host)
	var one T
	if err == nil {
		one, err = ask(ctx, b, m.Host)
	}
	if err != nil && m.State == deployment.Secondary {
		v.machines.rest(m.Host)
	}
	return one, err
}

// readLoad asks one server.
func (v *view) readLoad(ctx context.Context, b backend.Backend, host string) (load, error) {
	reply, err := backend.Ask(ctx, b, statusCommand)
	if mongoerr.Is(err, 40415) { // an unknown field
		reply, err = backend.Ask(ctx, b, bareStatusCommand)
	}
	if err != nil {
		return load{}, fmt.Errorf("%s: %w", host, err)
	}
	return parseLoad(reply, host), nil
}

// parseLoad reads a reply to serverStatus.
func parseLoad(reply bson.Document, host string) load {
	l := load{host: host, at: time.Now(), queued: -1, ticketsFree: -1, dirty: -1, used: -1, cpu: -1}
	if s, ok := at(reply, "version"); ok {
		text, _ := s.StringValueOK()
		major, _, _ := strings.Cut(text, ".")
		l.version, _ = strconv.Atoi(major)
	}
	if n, ok := figure(reply, "globalLock", "currentQueue", "total"); ok {
		l.queued = n
	}
	l.parseCache(reply)
	l.parseTickets(reply)
	user, hasUser := figure(reply, "extra_info", "user_time_us")
	system, hasSystem := figure(reply, "extra_info", "system_time_us")
	if hasUser && hasSystem {
		l.cpu = (user + system) / 1e6
	}
	if first, ok := at(reply, "oplog", "earliestOptime"); ok {
		l.first, _, _ = first.TimestampOK()
	}
	if last, ok := at(reply, "oplog", "latestOptime"); ok {
		l.last, _, _ = last.TimestampOK()
	}
	return l
}

// at follows a path of keys.
func at(doc []byte, path ...string) (bson.Value, bool) {
	for _, key := range path[:len(path)-1] {
		v, ok := bson.Get(doc, key)
		if !ok || v.Type != bson.TypeDocument {
			return bson.Value{}, false
		}
		doc = v.Data
	}
	return bson.Get(doc, path[len(path)-1])
}

// figure reads a number at a path of keys.
func figure(doc []byte, path ...string) (float64, bool) {
	v, ok := at(doc, path...)
	if !ok {
		return 0, false
	}
	return v.AsFloat64OK()
}

// over judges a figure of every server that reports it, and gives the worst verdict. Absent: no server reports it.
func (v *view) over(ctx context.Context, probe, what string, figure func(l *load) float64) (Verdict, error) {
	loads, err := v.readLoads(ctx)
	if err != nil {
		return Verdict{}, err
	}
	out, reported := going, false
	for i := range loads {
		value := figure(&loads[i])
		if value < 0 {
			continue
		}
		reported = true
		out = worst(out, v.judge(probe, what+" on "+loads[i].host, value))
	}
	if !reported {
		return Verdict{}, Absent("not reported")
	}
	return out, nil
}

// machines are what is remembered of servers.
type machines struct {
	mu    *sync.Mutex
	until map[string]time.Time // when a secondary is asked again that did not answer
}

func newMachines() machines { return machines{mu: &sync.Mutex{}, until: map[string]time.Time{}} }

func (m *machines) rests(host string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().Before(m.until[host])
}

func (m *machines) rest(host string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.until[host] = time.Now().Add(secondaryRest)
}
