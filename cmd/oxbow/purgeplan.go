package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"oxbow/internal/backend"
	"oxbow/internal/maintain"
	"oxbow/internal/maintain/purge"
	"oxbow/internal/terminal"
)

// purgePlanOptions are the flags of purge plan.
type purgePlanOptions struct {
	purgeOptions
	json   bool
	window time.Duration
	trial  time.Duration
}

func purgePlanCommand() *cobra.Command {
	var o purgePlanOptions
	c := &cobra.Command{
		Use:   "plan --ns DB.COLL --before AGE --time-field FIELD",
		Short: "Look at a collection and say how what is to go would go",
		Long: "Look at a collection, without changing anything: what its time field holds, what arrives, which indexes there are. Say which strategies keep up with\n" +
			"what arrives, how long each takes and what it costs, and print the command that runs the best one. Where no index leads to what is to go, say which one\n" +
			"is missing. With --trial it deletes for that long, to measure its rate.",
		Args: noArguments,
		RunE: untilSignal(func(ctx context.Context, stdout, stderr io.Writer) error { return planPurge(ctx, &o, stdout, stderr) }),
	}
	o.flags(c)
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	c.Flags().DurationVar(&o.window, "night", 8*time.Hour, "length of the window that nightly has a day")
	c.Flags().DurationVar(&o.trial, "trial", 0, "measure the rate of one worker by deleting for that long, paced; 0: go by assumptions")
	return c
}

// purgePlan is what purge plan prints as JSON.
type purgePlan struct {
	Collection *purge.Collection `json:"collection"`
	Plan       *purge.Plan       `json:"plan"`
	Command    string            `json:"command,omitempty"` // that runs the winner
}

// errNoPlan makes purge plan fail after it has printed why.
var errNoPlan = errors.New("nothing can take these documents away as they are")

func planPurge(ctx context.Context, o *purgePlanOptions, stdout, stderr io.Writer) error {
	params, err := o.parameters()
	if err != nil {
		return err
	}
	if err := o.checkGoing(params); err != nil {
		return err
	}
	limits, err := o.limits()
	if err != nil {
		return err
	}
	if err := o.checkPlan(); err != nil {
		return err
	}
	return o.on(ctx, "", stderr, func(ctx context.Context, p *purging) error {
		if params.Parts == "" {
			p.warnOfNothing(ctx, stderr)
		}
		assumed := purge.Assumptions{Workers: o.workers, Limit: limits.Documents, Window: o.window}
		if o.trial > 0 {
			if assumed.Measured, err = p.trial(ctx, params, limits, o.trial); err != nil {
				return fmt.Errorf("trial: %w", err)
			}
		}
		plan, err := o.plan(ctx, p, params, assumed)
		if err != nil {
			return err
		}
		if o.json {
			return printJSON(stdout, plan)
		}
		if err := plan.print(stdout); err != nil {
			return err
		}
		if plan.Plan.Winner == "" {
			return errNoPlan
		}
		return nil
	})
}

// checkGoing refuses parameters that don't say what goes. Collections that are named by their time need no field that tells it.
func (o *purgePlanOptions) checkGoing(params *purge.Parameters) error {
	if params.Parts == "" || params.Field != "" {
		what, err := params.Predicate()
		if err == nil {
			err = what.Check()
		}
		return err
	}
	drop := *params
	drop.Strategy, drop.Workers = purge.Drop, 0
	doc, err := drop.Document()
	if err != nil {
		return err
	}
	return purge.Check(maintain.Spec{Kind: purge.KindName, Namespace: o.ns, Parameters: doc}, maintain.DefaultDatabase)
}

// checkPlan refuses what can't be planned with. A trial deletes, so what must not be purged is not tried either.
func (o *purgePlanOptions) checkPlan() error {
	switch {
	case o.workers < 0:
		return fmt.Errorf("--workers: %d is no number of workers", o.workers)
	case o.window <= 0:
		return fmt.Errorf("--night: %s is no time", o.window)
	case o.trial < 0:
		return fmt.Errorf("--trial: %s is less than no time", o.trial)
	}
	database, collection, err := namespace(o.ns)
	if err == nil && o.trial > 0 {
		err = purge.CheckNamespace(backend.Namespace{Database: database, Collection: collection}, maintain.DefaultDatabase)
	}
	return err
}

// plan looks at the collection and weighs the strategies.
func (o *purgeOptions) plan(ctx context.Context, p *purging, params *purge.Parameters, assumed purge.Assumptions) (*purgePlan, error) {
	what, err := params.Predicate()
	if err != nil {
		return nil, err
	}
	t, err := p.target(ctx)
	if err != nil {
		return nil, err
	}
	parts, err := p.partsOf(ctx, params)
	if err != nil {
		return nil, err
	}
	if len(params.Where) > 0 {
		parts = nil // a filter chooses among documents
	}
	c, err := purge.Look(ctx, t, what, parts, time.Now())
	if err != nil {
		return nil, err
	}
	plan := &purgePlan{Collection: c, Plan: purge.Weigh(c, assumed)}
	plan.Command = o.command(plan.Plan)
	return plan, nil
}

// trial runs one worker of ranges for a while and returns its rate.
func (p *purging) trial(ctx context.Context, params *purge.Parameters, limits maintain.Limits, d time.Duration) (float64, error) {
	o, err := params.Options()
	if err != nil {
		return 0, err
	}
	at, err := backend.ServerTime(ctx, p.Whole())
	if err != nil {
		return 0, err
	}
	if apart := maintain.Apart(time.Now(), at); apart != "" {
		return 0, fmt.Errorf("the clock of this machine is %s the deployment's, and by it too much may go", apart)
	}
	o.Strategy, o.Workers, o.Targets = purge.Ranges, 1, purge.DeploymentTargets(p.Deployment, p.ns)
	job, err := purge.New(o)
	if err != nil {
		return 0, err
	}
	pace := p.throttle.Pace(limits)
	var out maintain.Outcome
	gone := int64(0)
	began := time.Now()
	for began.Add(d).After(time.Now()) && !out.Done {
		if out, err = job.Step(ctx, out.Checkpoint, pace); err != nil {
			return 0, err
		}
		gone += out.Documents
	}
	if gone == 0 {
		return 0, errors.New("nothing went in that time, so there is no rate")
	}
	return float64(gone) / time.Since(began).Seconds(), nil
}

// command is the command that runs the winner.
func (o *purgeOptions) command(p *purge.Plan) string {
	if p.Winner == "" {
		return ""
	}
	args := []string{"oxbow purge run", "--uri " + terminal.Argument(withoutPassword(o.uri)), "--ns " + terminal.Argument(o.ns), "--strategy " + string(p.Winner)}
	for _, e := range p.Estimates {
		if e.Strategy == p.Winner && e.Workers > 0 {
			args = append(args, fmt.Sprintf("--workers %d", e.Workers))
		}
	}
	what := []struct{ name, value string }{
		{"time-field", o.field}, {"unit", o.unit}, {"before", o.before}, {"from", o.from}, {"where", o.where}, {"parts", o.parts}, {"zone", o.zone},
	}
	if p.Winner == purge.TTL { // what goes is what the index says
		what = nil
	}
	for _, f := range append(what, []struct{ name, value string }{
		{"limit-documents", o.documents}, {"limit-bytes", o.bytes}, {"throttle", o.throttle},
	}...) {
		passedOver := f.name == "unit" && (o.field == "" || f.value == "date") || (f.name == "parts" || f.name == "zone") && p.Winner != purge.Drop
		if f.value != "" && !passedOver {
			args = append(args, "--"+f.name+" "+terminal.Argument(f.value))
		}
	}
	return strings.Join(args, " ")
}

// print prints a plan as text.
func (p *purgePlan) print(w io.Writer) error {
	w = terminal.Lines(w)
	c := p.Collection
	fmt.Fprintf(w, "%s: %s documents, %s, indexes %s: %s\n", c.Namespace, figure(c.Documents), size(c.Bytes), size(c.IndexBytes), orElse(strings.Join(c.Indexes, " "), "none"))
	if c.Matches >= 0 {
		fmt.Fprintf(w, "goes now: %s documents\n", figure(c.Matches))
	} else {
		fmt.Fprintln(w, "goes now: unknown (no index leads there, or counting takes too long)")
	}
	if c.Arrival >= 0 {
		fmt.Fprintf(w, "arrives: %.1f documents a second (%s)\n", c.Arrival, c.ArrivalOf)
	} else {
		fmt.Fprintf(w, "arrives: unknown (%s)\n", c.ArrivalOf)
	}
	entry := "unknown"
	if c.Entry >= 0 {
		entry = fmt.Sprintf("%d bytes for a document", c.Entry)
	}
	fmt.Fprintf(w, "oplog: %s\n", orElse(c.EntryNote, entry))
	if err := p.printHeld(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nrates: %s\n", p.Plan.RateOf)
	if err := p.printEstimates(w); err != nil {
		return err
	}
	if p.Plan.Winner == "" {
		_, err := fmt.Fprintf(w, "\nrefused: %s\n", p.Plan.Reason)
		return err
	}
	if p.Collection.Refused != "" {
		fmt.Fprintf(w, "\nnot by document: %s\n", p.Collection.Refused)
	}
	_, err := fmt.Fprintf(w, "\nbest: %s: %s\n  %s\n", p.Plan.Winner, p.Plan.Reason, p.Command)
	return err
}

// printHeld prints what the time field holds.
func (p *purgePlan) printHeld(w io.Writer) error {
	c := p.Collection
	if c.Held == nil && c.HeldNote == "" {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "\nTHE TIME FIELD HOLDS\tDOCUMENTS\tWHICH")
	for _, h := range c.Held {
		goes := "stay"
		if h.Goes {
			goes = "go"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", h.What, figure(h.Count), goes)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if c.HeldNote != "" {
		fmt.Fprintf(w, "not all is known: %s\n", c.HeldNote)
	}
	if c.UnitNote != "" {
		fmt.Fprintf(w, "is the unit right? %s\n", c.UnitNote)
	}
	return nil
}

func (p *purgePlan) printEstimates(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "STRATEGY\tDOCUMENTS/S\tKEEPS UP\tTAKES\tOPLOG\t")
	for _, e := range p.Plan.Estimates {
		if !e.Possible {
			why := e.Why
			if why == p.Plan.Reason || why == p.Collection.Refused {
				why = "see below"
			}
			fmt.Fprintf(table, "%s\t-\t-\t-\t-\tno: %s\n", e.Strategy, why)
			continue
		}
		keeps := "unknown"
		if e.KeepsUp != nil {
			keeps = map[bool]string{true: "yes", false: "no"}[*e.KeepsUp]
		}
		name, rate := string(e.Strategy), "-"
		if e.Workers > 0 {
			name += fmt.Sprintf(" (%d workers)", e.Workers)
		}
		if e.Rate >= 0 {
			rate = figure(int64(e.Rate))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", name, rate, keeps, lasting(e.Takes), size(e.Oplog), e.Why)
	}
	return table.Flush()
}
