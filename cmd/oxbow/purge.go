package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/archive"
	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/config"
	"oxbow/internal/deployment"
	"oxbow/internal/maintain"
	"oxbow/internal/maintain/purge"
	"oxbow/internal/operation"
	"oxbow/internal/terminal"
	"oxbow/internal/throttle"
)

// purgeOptions are the flags that all of purge has.
type purgeOptions struct {
	uri, ns                    string
	field, unit, before, from  string
	where, parts, zone         string
	documents, bytes, throttle string
	workers                    int
}

func purgeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "purge",
		Short: "Take documents away that have to go, at a rate that nobody feels",
		Long: "Take documents away from a collection of any MongoDB deployment, with or without a gateway: those older than an age or an instant, those that a filter\n" +
			"matches, or both. 'oxbow purge plan' looks at the collection and says how; 'oxbow purge run' does it.",
		Args: cobra.NoArgs, RunE: help,
	}
	c.AddCommand(purgePlanCommand(), purgeRunCommand())
	return c
}

func (o *purgeOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.uri, "uri", defaultURI, "connection string")
	f.StringVar(&o.ns, "ns", "", "namespace, DATABASE.COLLECTION")
	f.StringVar(&o.field, "time-field", "", "field that tells the time of a document, which may be _id")
	f.StringVar(&o.unit, "unit", "date", "how it tells it: date, s or ms (since 1970), objectId")
	f.StringVar(&o.before, "before", "", "what goes: an age such as 36h, 1d or 2w, or an instant such as 2001-02-01 or 2001-02-01T00:00:00Z")
	f.StringVar(&o.from, "from", "", "documents whose time lies before that stay; by default 1990-01-01, so that a wrong unit takes nothing away")
	f.StringVar(&o.where, "where", "", "what goes: a filter as Extended JSON")
	f.StringVar(&o.parts, "parts", "", "names of collections that hold a day each, such as fla.logGset{yymmdd}, for drop")
	f.StringVar(&o.zone, "zone", "", "in which the days of --parts begin, such as Asia/Shanghai; by default UTC")
	f.StringVar(&o.documents, "limit-documents", "", "documents a second at most, such as 5000/s")
	f.StringVar(&o.bytes, "limit-bytes", "", "bytes of oplog a second at most, such as 10MiB/s")
	f.StringVar(&o.throttle, "throttle", "", "thresholds of the throttle: slow from the first figure, stop at the second, as in \"lag<2s..10s canary<2x..5x cpu=off\" (docs/throttle.md)")
	f.IntVar(&o.workers, "workers", 0, "of ranges and nightly; 0: plan proposes how many, run has 4")
	c.MarkFlagRequired("ns")
}

// parameters are the flags as a job's.
func (o *purgeOptions) parameters() (*purge.Parameters, error) {
	p := &purge.Parameters{Field: o.field, Workers: o.workers, Parts: o.parts, Zone: o.zone}
	if o.field != "" {
		p.Unit = o.unit
	}
	if o.before != "" {
		if age, err := config.ParseDuration(o.before); err == nil {
			p.Age = age.Milliseconds()
		} else if p.Before, err = instant(o.before); err != nil {
			return nil, fmt.Errorf("--before: %q is neither an age (36h, 1d, 2w) nor an instant (2001-02-01, 2001-02-01T00:00:00Z)", o.before)
		}
	}
	if o.from != "" {
		var err error
		if p.From, err = instant(o.from); err != nil {
			return nil, fmt.Errorf("--from: %w", err)
		}
	}
	if o.where != "" {
		var err error
		if p.Where, err = config.ParseFilter(o.where); err != nil {
			return nil, fmt.Errorf("--where: %w", err)
		}
	}
	_, err := p.Location()
	return p, err
}

// limits reads the two limits.
func (o *purgeOptions) limits() (l maintain.Limits, err error) {
	if text := strings.TrimSuffix(o.documents, "/s"); text != "" {
		if l.Documents, err = strconv.ParseFloat(text, 64); err != nil || !(l.Documents > 0) || math.IsInf(l.Documents, 0) {
			return l, fmt.Errorf("--limit-documents: %q is no number of documents a second, such as 5000/s", o.documents)
		}
	}
	if text := strings.TrimSuffix(o.bytes, "/s"); text != "" {
		n, err := config.ParseSize(text)
		if err != nil {
			return l, fmt.Errorf("--limit-bytes: %w", err)
		}
		l.Bytes = float64(n)
	}
	return l, nil
}

// purging is a deployment that documents are taken away from.
type purging struct {
	*deployment.Deployment
	ns       backend.Namespace
	throttle *throttle.Throttle
	paced    atomic.Pointer[throttle.Pace] // of the job that runs
	archives []*archive.Archive            // that were opened
	unlisted error                         // why the last of them could not be closed
	log      *slog.Logger
}

// canaryCollection is where, in the jobs' database, a small document is written and read to see how long that takes.
const canaryCollection = "canary"

// on opens the deployment and begins to watch it, and runs something. Without a database for a canary nothing is written.
func (o *purgeOptions) on(ctx context.Context, canary string, stderr io.Writer, run func(context.Context, *purging) error) error {
	database, collection, err := namespace(o.ns)
	if err != nil {
		return err
	}
	settings, err := throttle.Parse(o.throttle)
	if err != nil {
		return fmt.Errorf("--throttle: %w", err)
	}
	d, closeAll, err := openDeployment(ctx, o.uri)
	if err != nil {
		return err
	}
	defer closeAll()
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	look := throttle.On{Deployment: d, Settings: settings, StatsDatabase: database, Log: slog.New(slog.DiscardHandler)}
	if canary != "" {
		look.Canary = backend.Namespace{Database: canary, Collection: canaryCollection}
	}
	p := &purging{Deployment: d, ns: backend.Namespace{Database: database, Collection: collection}, log: log, throttle: throttle.Of(look)}
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() { defer close(watched); p.throttle.Run(watching) }()
	defer func() { stop(); <-watched }()
	return run(ctx, p)
}

// target is the collection, with its reader.
func (p *purging) target(ctx context.Context) (purge.Target, error) {
	targets, err := purge.DeploymentTargets(p.Deployment, p.ns)(ctx)
	if err != nil {
		return purge.Target{}, err
	}
	return targets[0], nil
}

// partsOf are the parts that could be dropped; nil: there are none.
func (p *purging) partsOf(ctx context.Context, params *purge.Parameters) (purge.Parts, error) {
	if params.Parts == "" {
		return purge.GatewayParts(ctx, p.Whole(), p.ns)
	}
	zone, err := params.Location()
	if err != nil {
		return nil, err
	}
	return purge.NewNamedParts(p.Whole(), params.Parts, zone)
}

// kind makes purge's jobs.
func (p *purging) kind() maintain.Kind {
	return purge.Kind(purge.Surroundings{
		Targets: func(ns backend.Namespace) func(context.Context) ([]purge.Target, error) {
			return purge.DeploymentTargets(p.Deployment, ns)
		},
		Parts: func(ns backend.Namespace) purge.Parts { return purge.ServerParts(p.Whole(), ns) },
		Names: func(string) backend.Backend { return p.Whole() },
		OpenArchive: func(dir string, rotate int64) (purge.ClosingArchive, error) {
			a, err := archive.Open(archive.Options{Dir: dir, Rotate: rotate})
			if err != nil {
				return nil, err
			}
			p.archives = append(p.archives, a)
			return noted{a, &p.unlisted}, nil
		},
		Log: p.log,
	})
}

// noted is an archive whose end is noted.
type noted struct {
	*archive.Archive
	end *error
}

// Close closes the archive.
func (n noted) Close() error {
	*n.end = n.Archive.Close()
	return *n.end
}

// warnOfNothing tells of a collection that is not there, which looks like one that holds nothing that goes.
func (p *purging) warnOfNothing(ctx context.Context, stderr io.Writer) {
	body := backend.Command(p.ns.Database, func(dst []byte) []byte {
		dst = bsoncore.AppendInt32Element(dst, "listCollections", 1)
		dst = bsoncore.AppendDocumentElement(dst, "filter", bsoncore.NewDocumentBuilder().AppendString("name", p.ns.Collection).Build())
		return bsoncore.AppendBooleanElement(dst, "nameOnly", true)
	})
	reply, err := backend.Ask(ctx, p.Whole(), body)
	if err != nil {
		return // who may not list it finds out what it holds
	}
	c, err := backend.ParseCursorReply(reply)
	if err != nil {
		return
	}
	if there := bson.Elements(c.Batch); !there.Next() {
		fmt.Fprintf(stderr, "warning: there is no collection %s now\n", terminal.Text(p.ns.String()))
	}
}

// pace is the throttle for a job; one that drops is let through where the disk is full.
func (p *purging) pace(spec maintain.Spec) maintain.Throttle {
	pace := p.throttle.Pace(spec.Limits)
	if params, err := purge.ReadParameters(spec.Parameters); err == nil && params.Strategy == purge.Drop {
		pace = p.throttle.DropPace(spec.Limits)
	}
	p.paced.Store(pace)
	return pace
}

// verdict is what the throttle says of the job, or of any before there is one.
func (p *purging) verdict() throttle.Verdict {
	if pace := p.paced.Load(); pace != nil {
		return pace.Verdict()
	}
	return p.throttle.Verdict()
}

// kill ends all commands with a job's comment.
func (p *purging) kill(ctx context.Context, tag string) error {
	return operation.KillTagged(ctx, p.Deployment, tag)
}

// figure writes a number with its thousands apart, or "unknown".
func figure(n int64) string {
	if n < 0 {
		return "unknown"
	}
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// size writes bytes as people do, or "unknown".
func size(n int64) string {
	if n < 0 {
		return "unknown"
	}
	f, unit := float64(n), "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if f < 1024 {
			break
		}
		f, unit = f/1024, next
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, unit)
}

// lasting writes a duration as people do, or "unknown".
func lasting(d time.Duration) string {
	switch {
	case d < 0:
		return "unknown"
	case d < time.Second:
		return "under 1s"
	case d > 48*time.Hour:
		return fmt.Sprintf("%.1f days", d.Hours()/24)
	}
	return d.Round(time.Second).String()
}
