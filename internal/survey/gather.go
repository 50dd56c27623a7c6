package survey

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/deployment"
	"oxbow/internal/operation"
)

// Deployment is what is surveyed.
type Deployment interface {
	operation.Deployment
	Whole() backend.Backend
}

// Options say how much is asked.
type Options struct {
	Between     time.Duration // the two looks at what changes
	Pace        time.Duration // of rest between two collections
	Namespaces  []string      // "db.collection" or "db.*"; nil: all
	Collections int           // looked at, at most; 0: DefaultCollections
	Now         func() time.Time
	Progress    func(string) // is told what is looked at; nil: nobody is
}

// What holds where Options say nothing.
const (
	DefaultBetween     = 5 * time.Second
	DefaultPace        = 20 * time.Millisecond
	DefaultCollections = 1000
)

// gathering is one survey under way.
type gathering struct {
	Deployment
	o      Options
	survey *Survey
	reads  reader            // collections
	by     map[string]reader // sets, and servers in none, by the host that is asked for them
	counts map[string]bool   // the namespaces that are counted again
}

// Gather looks at a deployment. It reads little: a hidden secondary is asked where there is one, else a secondary; of each collection the figures, and
// a few hundred documents at most, by an index or at random. An error means that the deployment does not answer.
func Gather(ctx context.Context, d Deployment, o Options) (*Survey, error) {
	o.Collections = cmp.Or(o.Collections, DefaultCollections)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	s := &Survey{
		At: o.Now(), Between: o.Between, Seconds: o.Between.Seconds(),
		Servers: []Server{}, Oplogs: []Oplog{}, Collections: []Collection{}, Running: []Running{}, Profiled: []Profiled{}, Missing: []string{},
	}
	g := &gathering{Deployment: d, o: o, survey: s, by: map[string]reader{}, counts: map[string]bool{}}
	if err := g.members(ctx); err != nil {
		return nil, fmt.Errorf("ask for the members: %w", err)
	}
	g.servers(ctx)
	g.databases(ctx)
	g.operations(ctx)
	g.again(ctx)
	return g.survey, ctx.Err()
}

// missing notes what could not be had.
func (g *gathering) missing(what string, err error) {
	g.survey.Missing = append(g.survey.Missing, what+": "+err.Error())
}

// members asks who there is, and picks whom to ask for what.
func (g *gathering) members(ctx context.Context) error {
	members, err := g.Members(ctx)
	if err != nil {
		return err
	}
	primaries := map[string]time.Time{}
	for i := range members {
		if m := &members[i]; m.State == deployment.Primary {
			primaries[m.Set] = m.Applied
		}
	}
	sharded := false
	for i := range members {
		m := &members[i]
		shown := Member{Host: m.Host, Set: m.Set, State: m.State.String(), Why: m.Why, Hidden: m.Hidden, DelaySeconds: m.Delay.Seconds(), Tags: m.Tags, Votes: m.Votes, state: m.State}
		if m.State == deployment.Secondary && !m.Applied.IsZero() && !primaries[m.Set].IsZero() {
			shown.BehindMillis = Known(m.Behind(primaries[m.Set]).Milliseconds())
		}
		g.survey.Members = append(g.survey.Members, shown)
		sharded = sharded || m.State == deployment.Router
	}
	g.reads = reader{g.Whole(), ""}
	if set := quietest(members); !sharded && set != nil {
		if b, err := g.On(ctx, set.Host); err == nil {
			g.reads = reader{b, set.Host}
		}
	}
	for _, m := range asked(members) {
		b, err := g.On(ctx, m.Host)
		if err != nil {
			g.missing("figures of "+m.Host, err)
			continue
		}
		g.by[m.Host] = reader{b, m.Host}
	}
	return nil
}

// quietest is the member whose cache matters least to clients: a hidden secondary, else a secondary, else whoever holds data. Delayed ones are left out, since
// their figures are old.
func quietest(members []deployment.Member) *deployment.Member {
	rank := func(m *deployment.Member) int {
		switch {
		case m.State == deployment.Secondary && m.Hidden && m.Delay == 0:
			return 3
		case m.State == deployment.Secondary && m.Delay == 0:
			return 2
		case m.State == deployment.Primary:
			return 1
		}
		return 0
	}
	var best *deployment.Member
	for i := range members {
		if m := &members[i]; rank(m) > 0 && (best == nil || rank(m) > rank(best)) {
			best = m
		}
	}
	return best
}

// asked are the members that report figures of themselves: those that hold data and answer, or routers where there are no others.
func asked(members []deployment.Member) []deployment.Member {
	var holding, routers []deployment.Member
	for _, m := range members {
		switch m.State {
		case deployment.Primary, deployment.Secondary:
			holding = append(holding, m)
		case deployment.Router:
			routers = append(routers, m)
		}
	}
	if len(holding) == 0 {
		return routers
	}
	return holding
}

// servers asks each server for its own figures, and each replica set for its log.
func (g *gathering) servers(ctx context.Context) {
	if info, err := g.reads.simple(ctx, "admin", "buildInfo"); err != nil {
		g.missing("version", err)
	} else {
		g.survey.Version = text(info, "version")
	}
	sets := map[string]bool{}
	for _, m := range g.survey.Members {
		r, ok := g.by[m.Host]
		if !ok {
			continue
		}
		s := Server{Host: m.Host, Set: m.Set}
		if status, err := r.simple(ctx, "admin", "serverStatus"); err != nil {
			g.missing("serverStatus of "+m.Host, err)
		} else {
			s.UptimeSeconds = figure(status, "uptime")
			s.Scans = scansOf(status)
			s.TTLPasses, s.TTLDeleted = figure(status, "metrics", "ttl", "passes"), figure(status, "metrics", "ttl", "deletedDocuments")
		}
		if stats, err := r.simple(ctx, "admin", "dbStats"); err == nil {
			s.DiskTotal, s.DiskUsed = figure(stats, "fsTotalSize"), figure(stats, "fsUsedSize")
		}
		g.survey.Servers = append(g.survey.Servers, s)
		if m.Set != "" && !sets[m.Set] {
			sets[m.Set] = true
			g.oplog(ctx, m.Set)
		}
	}
}

// scansOf is how many collection scans a server counts: those of cursors that end, where it tells them apart
// (https://www.mongodb.com/docs/manual/reference/command/serverStatus/#mongodb-serverstatus-serverstatus.metrics.queryExecutor.collectionScans).
func scansOf(status bson.Document) Figure {
	if f := figure(status, "metrics", "queryExecutor", "collectionScans", "nonTailable"); f.Reported {
		return f
	}
	return figure(status, "metrics", "queryExecutor", "collectionScans", "total")
}

// operations asks what runs, and by which plan.
func (g *gathering) operations(ctx context.Context) {
	list, silent, err := operation.List(ctx, g)
	if err != nil {
		g.missing("what runs", err)
		return
	}
	for _, s := range silent {
		g.survey.Missing = append(g.survey.Missing, "what "+s.Member+" runs: "+s.Why)
	}
	for i := range list {
		o := &list[i]
		if o.Internal != "" || !slices.Contains(operation.Kinds, o.Kind) {
			continue
		}
		if err := operation.Explain(ctx, g, o); err != nil {
			g.missing("the plan of an operation on "+o.Namespace, err)
		}
		g.survey.Operations = append(g.survey.Operations, *o)
		g.survey.Running = append(g.survey.Running, Running{o.Member, o.Number(), o.Kind, o.Namespace, o.Age.Seconds(), o.Plan, o.Shape})
	}
}

// again waits, and looks a second time at what changes.
func (g *gathering) again(ctx context.Context) {
	if g.o.Between <= 0 {
		return
	}
	g.o.Progress("waits for the second look")
	select {
	case <-ctx.Done():
		return
	case <-time.After(g.o.Between):
	}
	for i := range g.survey.Servers {
		s := &g.survey.Servers[i]
		if status, err := g.by[s.Host].simple(ctx, "admin", "serverStatus"); err == nil {
			s.ScansAfter, s.TTLDeletedAfter = scansOf(status), figure(status, "metrics", "ttl", "deletedDocuments")
		}
	}
	for i := range g.survey.Collections {
		c := &g.survey.Collections[i]
		if !g.counts[c.Namespace] {
			continue
		}
		database, collection, _ := strings.Cut(c.Namespace, ".")
		if n, err := g.count(ctx, database, collection); err == nil {
			c.DocumentsAfter = n
		}
	}
}
