package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"oxbow/internal/backend"
	"oxbow/internal/config"
	"oxbow/internal/maintain"
	"oxbow/internal/maintain/purge"
	"oxbow/internal/schedule"
	"oxbow/internal/terminal"
	"oxbow/internal/throttle"
)

// purgeRunOptions are the flags of purge run.
type purgeRunOptions struct {
	purgeOptions
	strategy        string
	batch           int
	slice           time.Duration
	follow, unpaced bool
	ratio           float64
	archive, rotate string
	windows         []string
	stopFile, state string
	id              string
	maxRun          time.Duration
	dry             bool
}

func purgeRunCommand() *cobra.Command {
	var o purgeRunOptions
	c := &cobra.Command{
		Use:   "run --ns DB.COLL --strategy STRATEGY …",
		Short: "Take documents away by a strategy, as 'oxbow purge plan' proposes it",
		Long: "Take documents away, in the foreground, paced by what the deployment feels. ctrl-C lets the step end that is under way; the same command goes on where it\n" +
			"was, on this machine or another: its checkpoint lies in the deployment. 'oxbow jobs' shows, pauses and stops it, and changes its limits while it runs.",
		Args: noArguments,
		RunE: untilSignal(func(ctx context.Context, stdout, stderr io.Writer) error { return runPurge(ctx, &o, stdout, stderr) }),
	}
	o.flags(c)
	f := c.Flags()
	f.StringVar(&o.strategy, "strategy", "", "drop, slices, ranges, ids, nightly or ttl (docs/purge.md)")
	f.IntVar(&o.batch, "batch", 0, "documents a delete at most; 0: 1000")
	f.DurationVar(&o.slice, "slice", 0, "of slices; 0: 1m")
	f.BoolVar(&o.follow, "follow", false, "slices: go on for ever, slice by slice")
	f.BoolVar(&o.unpaced, "unpaced", false, "nightly: one delete of everything; slices: one a slice")
	f.Float64Var(&o.ratio, "max-ratio", 0, "stop when more documents are examined for one that goes; 0: 10")
	f.StringVar(&o.archive, "archive", "", "folder to write what goes to, before it does")
	f.StringVar(&o.rotate, "archive-rotate", "", "size of a file of the archive; by default 256MiB")
	f.StringArrayVar(&o.windows, "window", nil, "when it may run, such as \"22:00-08:00 Asia/Shanghai\" or \"mon-fri 22:00-06:00\"; several: any of them")
	f.StringVar(&o.stopFile, "stop-file", "", "it does nothing while this file is there")
	f.DurationVar(&o.maxRun, "max-run", 0, "how long it may run, in a window or in all")
	f.StringVar(&o.state, "state-db", maintain.DefaultDatabase, "database of the deployment in which it keeps how far it is")
	f.StringVar(&o.id, "id", "", "name of the job; by default it is made of the collection and the strategy")
	f.BoolVar(&o.dry, "dry-run", false, "say what would go and how, and change nothing")
	c.MarkFlagRequired("strategy")
	return c
}

// job is the flags as a job's parameters.
func (o *purgeRunOptions) job() (*purge.Parameters, error) {
	p, err := o.parameters()
	switch {
	case err != nil:
		return nil, err
	case o.slice != 0 && o.slice < time.Millisecond: // it is kept in milliseconds, where 0 is the default
		return nil, fmt.Errorf("--slice: %s is less than a millisecond", o.slice)
	case o.maxRun < 0:
		return nil, fmt.Errorf("--max-run: %s is less than no time", o.maxRun)
	}
	if p.Strategy, err = purge.ParseStrategy(o.strategy); err != nil {
		return nil, fmt.Errorf("--strategy: %w", err)
	}
	p.Batch, p.Slice, p.Follow, p.Unpaced, p.MaxRatio, p.Archive = o.batch, o.slice.Milliseconds(), o.follow, o.unpaced, o.ratio, o.archive
	if o.rotate != "" {
		if p.Rotate, err = config.ParseSize(o.rotate); err != nil {
			return nil, fmt.Errorf("--archive-rotate: %w", err)
		}
	}
	return p, nil
}

// maxJobName is longer than any namespace and strategy make it by themselves: a name is an _id, and a part of a comment.
const maxJobName = 512

// spec is the flags as a job.
func (o *purgeRunOptions) spec(p *purge.Parameters) (maintain.Spec, error) {
	limits, err := o.limits()
	if err != nil {
		return maintain.Spec{}, err
	}
	windows, err := schedule.ParseAll(o.windows)
	if err != nil {
		return maintain.Spec{}, fmt.Errorf("--window: %w", err)
	}
	s := maintain.Spec{
		ID: o.id, Kind: purge.KindName, Namespace: o.ns, Windows: windows, MaxRun: o.maxRun, StopFile: o.stopFile, Limits: limits,
	}
	if strings.ContainsFunc(s.ID, unicode.IsControl) || len(s.ID) > maxJobName {
		return s, fmt.Errorf("--id: %.40q… is no name of a job: it has at most %d bytes, and no control characters", s.ID, maxJobName)
	}
	if s.ID == "" {
		s.ID = fmt.Sprintf("purge %s by %s", o.ns, o.strategy)
	}
	if s.Parameters, err = p.Document(); err != nil {
		return s, err
	}
	return s, purge.Check(s, o.state)
}

func runPurge(ctx context.Context, o *purgeRunOptions, stdout, stderr io.Writer) error {
	params, err := o.job()
	if err != nil {
		return err
	}
	spec, err := o.spec(params)
	if err != nil {
		return err
	}
	canary := o.state
	if o.dry {
		canary = ""
	}
	return o.on(ctx, canary, stderr, func(ctx context.Context, p *purging) error {
		if params.Strategy != purge.Drop {
			p.warnOfNothing(ctx, stderr)
		}
		if o.dry {
			return o.dryRun(ctx, p, params, stdout)
		}
		return p.run(ctx, spec, o.state, stdout, stderr)
	})
}

// shownFirst is how many documents a dry run names.
const shownFirst = 10

// dryRun prints the plan and the first documents that would go.
func (o *purgeRunOptions) dryRun(ctx context.Context, p *purging, params *purge.Parameters, stdout io.Writer) error {
	stdout = terminal.Lines(stdout)
	plan, err := o.plan(ctx, p, params, purge.Assumptions{Workers: o.workers})
	if err != nil {
		return err
	}
	if params.Strategy != purge.TTL { // of what goes by itself there is nothing to weigh
		if err := plan.print(stdout); err != nil {
			return err
		}
		fmt.Fprintln(stdout)
	}
	if why := plan.refuses(params); why != "" {
		return fmt.Errorf("%s would take nothing: %s", params.Strategy, why)
	}
	switch params.Strategy {
	case purge.TTL:
		fmt.Fprintf(stdout, "%s: ttl only watches that\n", plan.Plan.Of(purge.TTL).Why)
	case purge.Drop:
		plan.printDue(stdout)
	default:
		err = printFirst(ctx, p, params, stdout)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, "nothing was changed")
	return err
}

// refuses is why a run with these parameters would be refused, "" where it would not.
func (p *purgePlan) refuses(params *purge.Parameters) string {
	if params.Unpaced && params.Strategy == purge.Nightly { // one delete of everything has no use for an order
		return p.Collection.Refused
	}
	if e := p.Plan.Of(params.Strategy); !e.Possible {
		return e.Why
	}
	return ""
}

// printDue prints which parts would be dropped.
func (p *purgePlan) printDue(w io.Writer) {
	due := 0
	for _, part := range p.Collection.Parts {
		if part.Due {
			due++
			fmt.Fprintf(w, "would drop %s: %s documents, until %s\n", part.Name, figure(part.Documents), part.End.UTC().Format(time.RFC3339))
		}
	}
	if due == 0 {
		fmt.Fprintln(w, "none of the parts is over: none would be dropped")
	}
}

// printFirst prints the first documents that would go.
func printFirst(ctx context.Context, p *purging, params *purge.Parameters, w io.Writer) error {
	what, err := params.Predicate()
	if err != nil {
		return err
	}
	t, err := p.target(ctx)
	if err != nil {
		return err
	}
	ids, err := purge.First(ctx, t, what, time.Now(), shownFirst)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		fmt.Fprintf(w, "no document would go by %s now\n", params.Strategy)
		return nil
	}
	fmt.Fprintf(w, "the first that would go by %s, by _id:\n", params.Strategy)
	for _, id := range ids {
		fmt.Fprintf(w, "  %s\n", id)
	}
	return nil
}

// run runs the job and shows how it goes.
func (p *purging) run(ctx context.Context, spec maintain.Spec, state string, stdout, stderr io.Writer) error {
	runner := maintain.New(maintain.Options{
		Store: maintain.NewStore(p.Whole(), state), Kinds: map[string]maintain.Kind{purge.KindName: p.kind()},
		Throttle: p.pace, Kill: p.kill, Log: p.log,
		BackendTime: func(ctx context.Context, _ maintain.Spec) (time.Time, error) {
			return backend.ServerTime(ctx, p.Whole())
		},
	})
	show := newPurgeShow(stderr, spec.ID)
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() { defer close(watched); show.watch(watching, p.verdict) }()
	status, err := runner.Once(ctx, spec, show.status)
	stop()
	<-watched
	show.end()
	if status.ID != "" { // else there is an error, and nothing was begun
		p.report(stdout, &status)
	}
	switch {
	case err != nil:
		return err
	case status.State == maintain.Done && p.unlisted != nil:
		return fmt.Errorf("what went is archived, but not in the archive's lists; they are made whole when its folder is opened again: %w", p.unlisted)
	case status.State == maintain.Done:
		return nil
	case status.State == maintain.Failed:
		return errors.New(status.Reason)
	case ctx.Err() != nil:
		return errors.New("stopped after a step: the same command goes on where it was")
	}
	return fmt.Errorf("%s: %s; the same command goes on where it was", status.State, orElse(status.Reason, "no reason is told"))
}

// report prints what a pass came to.
func (p *purging) report(w io.Writer, s *maintain.Status) {
	why := ""
	if s.State != maintain.Done && s.Reason != "" {
		why = "; " + s.Reason
	}
	w = terminal.Lines(w)
	fmt.Fprintf(w, "%s: %s, %s documents gone%s%s\n", s.ID, s.State, figure(s.Documents), leftText(s), why)
	skipped := int64(0)
	for _, skip := range s.Skipped {
		fmt.Fprintf(w, "skipped: %s: %s\n", figure(skip.Count), skip.Reason)
		skipped += skip.Count
	}
	for _, a := range p.archives {
		total := a.Total()
		fmt.Fprintf(w, "archived by this run: %s documents, %s as %s\n", figure(total.Documents), size(total.Bytes), size(total.Stored))
		if more := total.Documents - s.Documents - skipped; s.Documents > 0 && more > 0 {
			fmt.Fprintf(w, "archived and still there, or archived twice: %s\n", figure(more))
		}
	}
}

// purgeShow shows a job on a terminal in one line that changes, elsewhere in lines now and then.
type purgeShow struct {
	out      io.Writer
	name     string
	terminal bool

	mu      sync.Mutex
	job     maintain.Status
	verdict throttle.Verdict
	last    time.Time // of the last line
	why     string    // in it: what tells its reason from another one, figures apart
}

func newPurgeShow(out io.Writer, name string) *purgeShow {
	s := &purgeShow{out: out, name: name, verdict: throttle.Verdict{Share: 1}}
	s.job.State, s.job.Remaining = maintain.Waiting, purge.Unknown
	if f, ok := out.(*os.File); ok {
		s.terminal = term.IsTerminal(int(f.Fd()))
	}
	return s
}

// verdictEvery is how often the throttle is looked at.
const verdictEvery = 200 * time.Millisecond

// watch shows what the throttle says as soon as that changes, until ctx ends. What the job says of itself comes later, and not at all while nothing can be written to
// the deployment, which may be why it is stopped.
func (s *purgeShow) watch(ctx context.Context, verdict func() throttle.Verdict) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(verdictEvery):
		}
		s.mu.Lock()
		s.verdict = verdict()
		s.showLocked(false)
		s.mu.Unlock()
	}
}

// status shows how the job stands.
func (s *purgeShow) status(now maintain.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.job = now
	s.showLocked(true)
}

// showLocked shows what is new. A terminal sees every status.
func (s *purgeShow) showLocked(status bool) {
	now, why := s.job, s.job.Reason
	if s.verdict.Share < 1 && (now.State == maintain.Running || now.Reason == "") { // else there is a reason for not running at all
		now.Reason, why = s.verdict.String(), s.verdict.State.String()+s.verdict.Probe
	}
	changed := why != s.why
	switch {
	case s.terminal && (status || changed):
		fmt.Fprint(s.out, "\r\x1b[K"+s.fitting(s.name+": "+statusLine(&now)))
	case !s.terminal && (changed || time.Since(s.last) >= lineEvery):
		fmt.Fprintf(s.out, "%s: %s\n", s.name, statusLine(&now))
	default:
		return
	}
	s.last, s.why = time.Now(), why
}

// fitting cuts a line to the terminal's width: one that wraps could not be written over.
func (s *purgeShow) fitting(line string) string {
	f, _ := s.out.(*os.File)
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 1 && len(line) >= width {
		return line[:width-1]
	}
	return line
}

// statusLine is a status in words.
func statusLine(s *maintain.Status) string {
	line := fmt.Sprintf("%s, %s gone%s", s.State, figure(s.Documents), leftText(s))
	if s.Rate > 0 {
		line += fmt.Sprintf(", %s/s", figure(int64(s.Rate)))
	}
	if s.ETA > 0 {
		line += ", " + lasting(time.Duration(s.ETA*float64(time.Second))) + " to go"
	}
	if s.Reason != "" {
		line += "; " + s.Reason
	}
	return terminal.Text(line)
}

// leftText is what is left, where that is known.
func leftText(s *maintain.Status) string {
	if s.Remaining < 0 {
		return ""
	}
	return fmt.Sprintf(", about %s left", figure(s.Remaining))
}

func (s *purgeShow) end() {
	if s.terminal {
		fmt.Fprintln(s.out)
	}
}
