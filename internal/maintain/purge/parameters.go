package purge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/deployment"
	"oxbow/internal/maintain"
	"oxbow/internal/route"
)

// KindName is that of jobs of this package, in maintain.Spec.
const KindName = "purge"

// Parameters are those of a maintain.Spec of KindName, whose Namespace is the collection. Zero values are those of Options and Predicate.
type Parameters struct {
	Strategy Strategy   `bson:"strategy"`
	Field    string     `bson:"field,omitempty"`
	Unit     string     `bson:"unit,omitempty"` // date, s, ms or objectId; "": date
	Before   time.Time  `bson:"before,omitempty"`
	Age      int64      `bson:"age,omitempty"` // milliseconds
	From     time.Time  `bson:"from,omitempty"`
	Where    driver.Raw `bson:"where,omitempty"`
	Workers  int        `bson:"workers,omitempty"`
	Batch    int        `bson:"batch,omitempty"`
	Slice    int64      `bson:"slice,omitempty"` // milliseconds
	Follow   bool       `bson:"follow,omitempty"`
	Unpaced  bool       `bson:"unpaced,omitempty"`
	Export   int        `bson:"export,omitempty"`
	MaxRatio float64    `bson:"maxRatio,omitempty"`
	Archive  string     `bson:"archive,omitempty"` // folder; "": none
	Rotate   int64      `bson:"rotate,omitempty"`  // bytes of a file of the archive
	Parts    string     `bson:"parts,omitempty"`   // template for names, for Drop; "": the partitions of a layout
	Zone     string     `bson:"zone,omitempty"`    // of the days in Parts; "": UTC
}

// Document is the parameters as a Spec has them.
func (p *Parameters) Document() (bson.Document, error) {
	doc, err := driver.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("write the parameters: %w", err)
	}
	return doc, nil
}

// ReadParameters reads the parameters of a Spec.
func ReadParameters(doc bson.Document) (*Parameters, error) {
	p := &Parameters{}
	if err := driver.Unmarshal(doc, p); err != nil {
		return nil, fmt.Errorf("read the parameters: %w", err)
	}
	return p, nil
}

// units are the names of the ways to tell time.
var units = []route.Unit{route.Date, route.Seconds, route.Milliseconds, route.ObjectID}

// Predicate is what the parameters say goes.
func (p *Parameters) Predicate() (Predicate, error) {
	out := Predicate{Field: p.Field, Before: p.Before, Age: time.Duration(p.Age) * time.Millisecond, From: p.From, Where: bson.Document(p.Where)}
	if p.Unit != "" {
		i := slices.IndexFunc(units, func(u route.Unit) bool { return u.String() == p.Unit })
		if i < 0 {
			return out, fmt.Errorf("there is no unit %q of a time field: there are date, s, ms and objectId", p.Unit)
		}
		out.Unit = units[i]
	}
	return out, nil
}

// unused returns an error for a parameter that the strategy would pass over.
func (p *Parameters) unused() error {
	if _, err := ParseStrategy(string(p.Strategy)); err != nil {
		return err
	}
	deleting := slices.DeleteFunc(Strategies(), func(s Strategy) bool { return s == TTL })
	for _, use := range []struct {
		name  string
		given bool
		by    []Strategy
	}{
		{"workers", p.Workers != 0, []Strategy{Ranges, Nightly}},
		{"slice", p.Slice != 0, []Strategy{Slices}},
		{"follow", p.Follow, []Strategy{Slices}},
		{"unpaced", p.Unpaced, []Strategy{Slices, Nightly}},
		{"export", p.Export != 0, []Strategy{IDs}},
		{"parts", p.Parts != "", []Strategy{Drop}},
		{"a time field", p.Field != "" || p.Unit != "", deleting},
		{"a time before which documents go", p.Age != 0 || !p.Before.IsZero(), deleting},
		{"a time from which documents go", !p.From.IsZero(), deleting},
		{"a filter", len(p.Where) > 0, deleting},
		{"batch", p.Batch != 0, deleting},
		{"the greatest ratio", p.MaxRatio != 0, deleting},
	} {
		if use.given && !slices.Contains(use.by, p.Strategy) {
			return fmt.Errorf("%s has no use for %s", p.Strategy, use.name)
		}
	}
	switch {
	case p.Rotate != 0 && p.Archive == "":
		return errors.New("without an archive there is nothing to rotate")
	case p.Zone != "" && p.Parts == "":
		return errors.New("zone is that of the days in parts, and there are none")
	}
	return nil
}

// Check says what is wrong with a Spec before anything is asked of a deployment, or written to it. state is the database in which jobs are kept.
func Check(spec maintain.Spec, state string) error {
	if err := CheckNamespace(namespaceOf(spec.Namespace), state); err != nil {
		return err
	}
	stand := Surroundings{
		Targets: func(ns backend.Namespace) func(context.Context) ([]Target, error) { return At(nil, ns) },
		Parts:   func(backend.Namespace) Parts { return CatalogParts{} },
		Names:   func(string) backend.Backend { return nil },
	}
	o, p, err := stand.options(&spec)
	if err != nil {
		return err
	}
	if p.Archive != "" {
		o.Archive = unopened{}
	}
	if n, ok := o.Parts.(*NamedParts); ok {
		if err := CheckNamespace(backend.Namespace{Database: literal(n.database), Collection: literal(n.names)}, state); err != nil {
			return err
		}
	}
	return o.complete()
}

// CheckNamespace refuses collections that are no application's: without them servers, users or jobs are not what they were.
func CheckNamespace(ns backend.Namespace, state string) error {
	switch {
	case ns.Database == "admin" || ns.Database == "config" || ns.Database == "local":
		return fmt.Errorf("database %s is the servers' own: nothing in it is purged", ns.Database)
	case ns.Database == state:
		return fmt.Errorf("database %s has the jobs, this one among them: nothing in it is purged", ns.Database)
	case strings.HasPrefix(ns.Collection, "system."):
		return fmt.Errorf("%s is the servers' own: nothing in it is purged", ns)
	}
	return nil
}

// literal is a template's text, its dates left out.
func literal(all []piece) string {
	var b strings.Builder
	for _, p := range all {
		b.WriteString(p.literal)
	}
	return b.String()
}

// unopened stands for an archive whose folder is not opened yet.
type unopened struct{ Archive }

// Options are the parameters as options; where documents go from and the archive are not among them.
func (p *Parameters) Options() (Options, error) {
	what, err := p.Predicate()
	return Options{
		Strategy: p.Strategy, Predicate: what, Workers: p.Workers, Batch: p.Batch, Slice: time.Duration(p.Slice) * time.Millisecond, Follow: p.Follow,
		Unpaced: p.Unpaced, Export: p.Export, MaxRatio: p.MaxRatio,
	}, err
}

// Location is the zone of Parts.
func (p *Parameters) Location() (*time.Location, error) {
	if p.Zone == "" {
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(p.Zone)
	if err != nil || p.Zone == "Local" {
		return nil, fmt.Errorf("there is no zone %q; zones are named as in the IANA database, such as Asia/Shanghai", p.Zone)
	}
	return zone, nil
}

// Surroundings are what Kind needs of whoever runs jobs.
type Surroundings struct {
	// Targets are those of a collection, for Options.Targets.
	Targets func(backend.Namespace) func(context.Context) ([]Target, error)
	// Parts are those of a collection that is split by time.
	Parts func(backend.Namespace) Parts
	// Names returns where the collections of a database are that are named by their time.
	Names func(database string) backend.Backend
	// OpenArchive opens an archive's folder, whose files have so many bytes, 0: about.
	OpenArchive func(dir string, rotate int64) (ClosingArchive, error)
	Log         *slog.Logger
}

// ClosingArchive is an Archive that is closed at the end of a pass.
type ClosingArchive interface {
	Archive
	io.Closer
}

// Kind makes jobs of Specs whose parameters are Parameters. What is wrong with those trying again does not mend; an archive that can't be opened now may be later.
func Kind(s Surroundings) maintain.Kind {
	return func(spec maintain.Spec) (maintain.Job, error) {
		o, p, err := s.options(&spec)
		if err != nil {
			return nil, maintain.Permanent(err)
		}
		if p.Archive == "" {
			return made(o)
		}
		if s.OpenArchive == nil {
			return nil, maintain.Permanent(errors.New("nothing can be archived here"))
		}
		archive, err := s.OpenArchive(p.Archive, p.Rotate)
		if err != nil {
			return nil, err
		}
		o.Archive = archive
		job, err := made(o)
		if err != nil {
			return nil, errors.Join(err, archive.Close())
		}
		return archiving{job, archive}, nil
	}
}

func made(o Options) (maintain.Job, error) {
	job, err := New(o)
	if err != nil {
		return nil, maintain.Permanent(err)
	}
	return job, nil
}

// options are a Spec's; its archive is not opened yet.
func (s *Surroundings) options(spec *maintain.Spec) (Options, *Parameters, error) {
	p, err := ReadParameters(spec.Parameters)
	if err == nil {
		err = p.unused()
	}
	if err != nil {
		return Options{}, nil, err
	}
	o, err := p.Options()
	if err != nil {
		return o, p, err
	}
	ns := namespaceOf(spec.Namespace)
	o.Targets, o.ArchiveAs, o.Comment, o.Log = s.Targets(ns), ns, spec.Tag(), s.Log
	switch {
	case o.Strategy != Drop:
	case p.Parts != "":
		zone, err := p.Location()
		if err != nil {
			return o, p, err
		}
		if o.Parts, err = NewNamedParts(s.Names(namespaceOf(p.Parts).Database), p.Parts, zone); err != nil {
			return o, p, err
		}
		o.ArchiveAs = backend.Namespace{}
	case s.Parts != nil:
		o.Parts = s.Parts(ns)
	}
	return o, p, nil
}

// archiving is a job that closes its archive.
type archiving struct {
	maintain.Job
	io.Closer
}

// ServerParts are the partitions that a server splits a collection into, if it is a gateway.
func ServerParts(b backend.Backend, ns backend.Namespace) Parts {
	return gatewayParts{&collection{Target{Backend: b, Namespace: ns}, defaultComment}}
}

// DeploymentTargets are a collection of a deployment as one target, whose _ids are read on a secondary if there is one.
func DeploymentTargets(d *deployment.Deployment, ns backend.Namespace) func(context.Context) ([]Target, error) {
	return func(ctx context.Context) ([]Target, error) {
		t := Target{Backend: d.Whole(), Namespace: ns}
		members, err := d.Members(ctx)
		if err != nil {
			return nil, err
		}
		if m := reader(members); m != nil {
			if t.Reader, err = d.On(ctx, m.Host); err != nil {
				return nil, err
			}
		}
		return []Target{t}, nil
	}
}

// reader is the secondary to read on: a hidden one before others, one with tags before those without, none that is delayed. In a sharded cluster no single
// member has it all.
func reader(members []deployment.Member) *deployment.Member {
	var best *deployment.Member
	rank := func(m *deployment.Member) int {
		n := 0
		if m.Hidden {
			n += 2
		}
		if len(m.Tags) > 0 {
			n++
		}
		return n
	}
	for i := range members {
		m := &members[i]
		if m.State == deployment.Router {
			return nil
		}
		if m.State == deployment.Secondary && m.Delay == 0 && m.Why == "" && (best == nil || rank(m) > rank(best)) {
			best = m
		}
	}
	return best
}
