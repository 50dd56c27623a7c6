package oxbow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/archive"
	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/config"
	"oxbow/internal/deployment"
	"oxbow/internal/maintain"
	"oxbow/internal/maintain/kill"
	"oxbow/internal/maintain/partition"
	"oxbow/internal/maintain/purge"
	"oxbow/internal/mongoerr"
	"oxbow/internal/observe"
	"oxbow/internal/operation"
)

// jobsGrace is what a step may take once the gateway stops: less than a service manager waits.
const jobsGrace = 5 * time.Second

// jobs are those that a gateway runs: of its configuration, kept in the catalog's database, and retention, which partition looks after.
type jobs struct {
	gateway  *Gateway
	runner   *maintain.Runner
	policies *observe.Policies

	mu          sync.Mutex
	deployments map[string]*deployment.Deployment // of the backends on servers
}

func (g *Gateway) newJobs(cfg *config.Config) *jobs {
	j := &jobs{gateway: g, policies: observe.NewPolicies(), deployments: map[string]*deployment.Deployment{}}
	started := g.options.now()
	o := maintain.Options{
		Store: maintain.NewStore(g.backends[cfg.Default], cfg.CatalogDatabase()), Kinds: j.kinds(), Throttle: j.throttle, Kill: j.kill,
		Log: g.log, Grace: jobsGrace, Lease: min(cfg.Lease, maxJobLease),
		Clock: func() (time.Time, time.Duration) { now := g.options.now(); return now.Round(0), now.Sub(started) },
	}
	o.BackendTime = func(ctx context.Context, s maintain.Spec) (time.Time, error) { return j.backendTime(ctx, cfg, s) }
	j.runner = maintain.New(o)
	return j
}

// backendTime is the earliest time of the servers that a job's leases, and the documents that it takes by their age, lie on: a clock that is ahead of any of them would
// take what has to stay.
func (j *jobs) backendTime(ctx context.Context, cfg *config.Config, s maintain.Spec) (time.Time, error) {
	var names []string
	if s.Kind == purge.KindName {
		names = j.gateway.backendsOf(s.Namespace)
	}
	if cfg.Shared() {
		names = append(names, cfg.Default)
	}
	earliest := j.gateway.options.now()
	for i, name := range slices.DeleteFunc(names, func(name string) bool { return j.gateway.backends[name].Abilities().Embedded }) {
		at, err := partition.HelloTime(j.gateway.backends)(ctx, name)
		if err != nil {
			return at, err
		}
		if i == 0 || at.Before(earliest) {
			earliest = at
		}
	}
	return earliest, nil
}

// maxJobLease keeps orders and the end of a lost process within reach, whatever the catalog's lease.
const maxJobLease = 10 * time.Second

// kinds are the kinds of jobs that a configuration may name.
func (j *jobs) kinds() map[string]maintain.Kind {
	g := j.gateway
	return map[string]maintain.Kind{
		purge.KindName: purge.Kind(purge.Surroundings{
			Targets: j.targets,
			Parts: func(ns backend.Namespace) purge.Parts {
				return purge.CatalogParts{Catalog: g.catalog, Backends: g.backends, Name: ns.String()}
			},
			Names: func(database string) backend.Backend { return g.backends[g.catalog.BackendFor(database)] },
			OpenArchive: func(dir string, rotate int64) (purge.ClosingArchive, error) {
				return archive.Open(archive.Options{Dir: dir, Rotate: rotate})
			},
			Log: g.log,
		}),
		"kill": func(s maintain.Spec) (maintain.Job, error) {
			d, err := j.deployment(g.catalog.BackendFor(databaseOf(s.Namespace)))
			if err != nil {
				return nil, maintain.Permanent(err)
			}
			note := func(e kill.Event) { j.policies.Note(e.Policy, e.Outcome()) }
			return kill.Kind(kill.Options{Deployment: d, Log: g.log.With("job", s.ID), Note: note})(s)
		},
	}
}

// targets are where a collection's documents lie: its partitions, or the one of a plain collection, on whose deployment a secondary is read where there is one.
func (j *jobs) targets(ns backend.Namespace) func(context.Context) ([]purge.Target, error) {
	g := j.gateway
	return func(ctx context.Context) ([]purge.Target, error) {
		if g.catalog.Snapshot().Collection(ns.String()) != nil {
			return purge.CatalogTargets(g.catalog, g.backends, ns.String())(ctx)
		}
		name := g.catalog.BackendFor(ns.Database)
		if g.backends[name].Abilities().Embedded {
			return purge.At(g.backends[name], ns)(ctx)
		}
		d, err := j.deployment(name)
		if err != nil {
			return nil, err
		}
		return purge.DeploymentTargets(d, ns)(ctx)
	}
}

// deployment is the deployment of a backend on servers.
func (j *jobs) deployment(name string) (*deployment.Deployment, error) {
	b, ok := j.gateway.backends[name]
	if !ok {
		return nil, fmt.Errorf("there is no backend %s", name)
	}
	if b.Abilities().Embedded {
		return nil, fmt.Errorf("backend %s is embedded: what runs there are the gateway's own commands, which guard looks after", name)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.deployments[name] == nil {
		j.deployments[name] = deployment.Of(name, b)
	}
	return j.deployments[name], nil
}

// kill ends what carries a job's tag on all deployments. What runs on an embedded backend ends with its step.
func (j *jobs) kill(ctx context.Context, tag string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(j.gateway.backends)) {
		if j.gateway.backends[name].Abilities().Embedded {
			continue
		}
		d, err := j.deployment(name)
		if err == nil {
			err = operation.KillTagged(ctx, d, tag)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// throttle is that of all backends on which a job's collection lies. A policy has none: it takes load away.
func (j *jobs) throttle(s maintain.Spec) maintain.Throttle {
	if s.Kind != purge.KindName {
		return nil
	}
	p, err := purge.ReadParameters(s.Parameters)
	drops := err == nil && p.Strategy == purge.Drop
	var all paces
	for _, name := range j.gateway.backendsOf(s.Namespace) {
		t := j.gateway.throttles.of(name)
		if drops {
			all = append(all, t.DropPace(maintain.Limits{}))
		} else {
			all = append(all, t.Pace(maintain.Limits{}))
		}
	}
	return all
}

// backendsOf are the backends on which a collection's documents lie, or will.
func (g *Gateway) backendsOf(namespace string) []string {
	s := g.catalog.Snapshot()
	col := s.Collection(namespace)
	if col == nil {
		return []string{s.BackendFor(databaseOf(namespace))}
	}
	names := map[string]bool{}
	for i := range col.All {
		names[col.All[i].Backend] = true
	}
	if len(names) == 0 {
		names[s.BackendFor(databaseOf(namespace))] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// paces is the pace that all of some throttles give.
type paces []maintain.Throttle

func (all paces) Wait(ctx context.Context, documents int, bytes int64) error {
	for _, p := range all {
		if err := p.Wait(ctx, documents, bytes); err != nil {
			return err
		}
	}
	return nil
}

func (all paces) Share() float64 {
	share := 1.0
	for _, p := range all {
		share = min(share, p.Share())
	}
	return share
}

func (all paces) Limit(l maintain.Limits) {
	for _, p := range all {
		p.Limit(l)
	}
}

func (all paces) Reason() string {
	for _, p := range all {
		if reason := p.Reason(); reason != "" {
			return reason
		}
	}
	return ""
}

func databaseOf(namespace string) string {
	database, _, _ := strings.Cut(namespace, ".")
	return database
}

// specsOf are the jobs of a configuration.
func specsOf(cfg *config.Config) []maintain.Spec {
	specs := make([]maintain.Spec, len(cfg.Jobs))
	for i, job := range cfg.Jobs {
		every := job.Every
		if job.EachWindow {
			every = maintain.EachWindow
		}
		specs[i] = maintain.Spec{
			ID: job.Name, Kind: job.Kind, Namespace: job.Namespace, Parameters: job.Parameters, Windows: job.Windows, MaxRun: job.MaxRun, StopFile: job.StopFile,
			Priority: job.Priority, Every: every, Limits: maintain.Limits{Documents: job.Documents, Bytes: job.Bytes}, Retries: job.Retries,
		}
	}
	return specs
}

// CheckJobs says what is wrong with the jobs of a configuration that only their kinds know.
func CheckJobs(cfg *config.Config) error {
	var errs []error
	for i, s := range specsOf(cfg) {
		var err error
		switch s.Kind {
		case purge.KindName:
			err = purge.Check(s, cfg.CatalogDatabase())
			if col := cfg.Collection(s.Namespace); err == nil && isLayoutDrop(&s) && (col == nil || col.Layout.Time == nil) {
				err = fmt.Errorf("drop needs a collection that is split by time, and %s is not; with parts it drops collections by their names", s.Namespace)
			}
		case "kill":
			if b := cfg.Backend(cfg.BackendFor(databaseOf(s.Namespace))); b != nil && b.Embedded != nil {
				err = fmt.Errorf("backend %s is embedded: what runs there are the gateway's own commands, which guard looks after", b.Name)
				break
			}
			_, err = kill.Kind(kill.Options{})(s)
		}
		if err != nil {
			errs = append(errs, cfg.Jobs[i].Problem(err))
		}
	}
	return errors.Join(errs...)
}

func isLayoutDrop(s *maintain.Spec) bool {
	p, err := purge.ReadParameters(s.Parameters)
	return err == nil && p.Strategy == purge.Drop && p.Parts == ""
}

// close closes the connections to members.
func (j *jobs) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var errs []error
	for _, d := range j.deployments {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}

// statuses are all jobs as they stand, retention's among them.
func (j *jobs) statuses(ctx context.Context) ([]maintain.Status, error) {
	list, err := j.runner.Store().List(ctx, j.gateway.options.now())
	if err != nil {
		return nil, err
	}
	kept := j.gateway.runner.Statuses()
	behind := j.behind(ctx, kept)
	for i := range kept {
		for _, name := range j.gateway.backendsOf(kept[i].Namespace) {
			kept[i].Undo = append(kept[i].Undo, behind[name]...)
		}
	}
	return append(j.dismissed(list), kept...), nil
}

// dismissed tells of stored jobs that the configuration does not have any more that nobody runs them.
func (j *jobs) dismissed(list []maintain.Status) []maintain.Status {
	for i := range list {
		s := &list[i]
		ended := s.State == maintain.Done || s.State == maintain.Failed
		if s.Owner == "" && !ended && !j.runner.Has(s.ID) {
			s.State, s.Reason, s.Next = maintain.Stopped, "the configuration does not have it any more", time.Time{}
		}
	}
	return list
}

// latest are all jobs as they stood when they were last looked at.
func (j *jobs) latest() []maintain.Status {
	return append(j.dismissed(j.runner.Latest()), j.gateway.runner.Statuses()...)
}

// behind tells, by backend, of the members that are behind on purpose: what was dropped of these jobs' collections can be read there until they follow. All
// backends are asked at once, so that several that do not answer take no longer than one.
func (j *jobs) behind(ctx context.Context, of []maintain.Status) map[string][]string {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	var names []string
	for _, s := range of {
		names = append(names, j.gateway.backendsOf(s.Namespace)...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	lists := make([][]string, len(names))
	var asked sync.WaitGroup
	for i, name := range names {
		asked.Go(func() { lists[i] = j.delayed(ctx, name) })
	}
	asked.Wait()
	behind := map[string][]string{}
	for i, name := range names {
		behind[name] = lists[i]
	}
	return behind
}

// delayed are a backend's members that follow with a delay; none where they can't be asked.
func (j *jobs) delayed(ctx context.Context, name string) []string {
	d, err := j.deployment(name)
	if err != nil {
		return nil
	}
	members, err := d.Members(ctx)
	if err != nil {
		return nil
	}
	var list []string
	for _, m := range members {
		if m.Delay > 0 {
			list = append(list, fmt.Sprintf("%s follows %s behind: what was dropped since can be read there", m.Host, m.Delay))
		}
	}
	return list
}

// jobCommands shows the jobs to the commands, which must not know them.
type jobCommands struct{ *jobs }

// List implements command.Jobs.
func (j jobCommands) List(ctx context.Context) ([]bson.Document, error) {
	list, err := j.statuses(ctx)
	if err != nil {
		return nil, err
	}
	return documents(list)
}

// History implements command.Jobs.
func (j jobCommands) History(ctx context.Context, id string) ([]bson.Document, error) {
	var list []maintain.Entry
	var err error
	ns, retention := strings.CutPrefix(id, partition.JobPrefix)
	if retention {
		list = j.gateway.runner.Entries(ns)
	} else {
		list, err = j.runner.Store().History(ctx, id, 0)
	}
	switch {
	case err != nil:
		return nil, err
	case len(list) > 0:
		return documents(list)
	case retention && !slices.ContainsFunc(j.gateway.runner.Statuses(), func(s maintain.Status) bool { return s.ID == id }):
		err = maintain.ErrNoJob
	case !retention:
		_, err = j.runner.Store().Get(ctx, id, j.gateway.options.now())
	}
	return []bson.Document{}, unknownJob(id, err)
}

// unknownJob is an error as a client gets it, of the code for a job that is not there.
func unknownJob(id string, err error) error {
	if errors.Is(err, maintain.ErrNoJob) {
		return mongoerr.New(mongoerr.NoSuchKey, "there is no job %s", id)
	}
	return err
}

// Order implements command.Jobs.
func (j jobCommands) Order(ctx context.Context, id string, order bson.Document) error {
	o, remove, err := maintain.ParseOrder(order)
	if err != nil {
		return mongoerr.New(mongoerr.BadValue, "%v", err)
	}
	ns, retention := strings.CutPrefix(id, partition.JobPrefix)
	switch {
	case retention && o.Resume:
		j.gateway.runner.Confirm(ns)
		return nil
	case retention:
		return mongoerr.New(mongoerr.IllegalOperation, "retention can be resumed when it has stopped, and nothing else: it follows keep and hold of its collection")
	case remove:
		err = j.remove(ctx, id)
	default:
		err = j.runner.Store().Order(ctx, id, o)
	}
	return unknownJob(id, err)
}

// remove forgets a job. One of the configuration would be gone until the file is read again, with nobody told: only what can't be read in its place is taken away.
func (j *jobs) remove(ctx context.Context, id string) error {
	if !j.runner.Has(id) {
		return j.runner.Store().Remove(ctx, id)
	}
	s, err := j.runner.Store().Get(ctx, id, j.gateway.options.now())
	if err != nil {
		return err
	}
	if s.Readable() {
		return mongoerr.New(mongoerr.IllegalOperation, "job %s is in the configuration: take it out of the file, and have that read again, before you remove it", id)
	}
	if err := j.runner.Store().Remove(ctx, id); err != nil {
		return err
	}
	j.runner.PutAgain(id)
	return nil
}

func documents[T any](list []T) ([]bson.Document, error) {
	docs := make([]bson.Document, len(list))
	for i := range list {
		doc, err := driver.Marshal(list[i])
		if err != nil {
			return nil, fmt.Errorf("show the jobs: %w", err)
		}
		docs[i] = doc
	}
	return docs, nil
}
