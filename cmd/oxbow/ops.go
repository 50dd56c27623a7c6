package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"oxbow/internal/deployment"
	"oxbow/internal/operation"
	"oxbow/internal/terminal"
)

// opsOptions are the flags that all of ops has.
type opsOptions struct {
	uri  string
	json bool
}

func opsCommand() *cobra.Command {
	var o opsOptions
	var chosen opsFilter
	c := &cobra.Command{
		Use:   "ops",
		Short: "List what runs on every member of a deployment, and kill it where it runs",
		Long: "List what runs on every member of a MongoDB deployment, the oldest first: where, for how long, on which collection, by which plan, and what it asks\n" +
			"for, without its values. Idle connections and what the servers run for themselves (replication, index builds, monitors) are left out.\n\n" +
			"It works on any deployment, with or without a gateway; through a gateway it lists the gateway's commands.",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := chosen.check(); err != nil {
				return err
			}
			return o.on(c.Context(), func(ctx context.Context, d *deployment.Deployment) error {
				return listOperations(ctx, d, chosen, o.json, c.OutOrStdout(), c.ErrOrStderr())
			})
		},
	}
	c.PersistentFlags().StringVar(&o.uri, "uri", defaultURI, "connection string")
	c.PersistentFlags().BoolVar(&o.json, "json", false, "print JSON")
	f := c.Flags()
	f.DurationVar(&chosen.older, "older", time.Second, "that run for longer")
	f.StringVar(&chosen.namespace, "ns", "", "on DATABASE.COLLECTION or DATABASE.*")
	f.StringSliceVar(&chosen.kinds, "kind", nil, "of these kinds: remove, update, find, count, aggregate, or another command's name")
	f.BoolVar(&chosen.internal, "all", false, "also idle connections and what the servers run for themselves")
	c.AddCommand(killCommand(&o), watchCommand(&o))
	return c
}

// on runs something on the deployment.
func (o *opsOptions) on(ctx context.Context, run func(context.Context, *deployment.Deployment) error) error {
	d, closeAll, err := openDeployment(ctx, o.uri)
	if err != nil {
		return err
	}
	defer closeAll()
	return run(ctx, d)
}

// opsFilter picks operations.
type opsFilter struct {
	older        time.Duration
	namespace    string
	kinds        []string
	internal     bool
	opid, member string
	comment, app string
}

// check refuses what would match nothing, whatever runs.
func (f *opsFilter) check() error {
	if database, collection, ok := strings.Cut(f.namespace, "."); f.namespace != "" && (!ok || database == "" || collection == "") {
		return fmt.Errorf("--ns: %q is no namespace: write DATABASE.COLLECTION or DATABASE.*", f.namespace)
	}
	if slices.Contains(f.kinds, "delete") {
		return fmt.Errorf("--kind: a delete is listed as %s", operation.Remove)
	}
	if f.older < 0 {
		return fmt.Errorf("--older: %s is less than no time", f.older)
	}
	return nil
}

// nothing says that no operation was picked, and what was left out.
func (f *opsFilter) nothing() string {
	if f.older > 0 {
		return fmt.Sprintf("nothing runs that was asked for: what runs for less than %s is not shown (--older)", f.older)
	}
	return "nothing runs that was asked for"
}

func (f *opsFilter) matches(o *operation.Operation) bool {
	database, _ := o.Collection()
	switch {
	case o.Internal != "" && !f.internal, o.Age < f.older:
	case f.namespace != "" && f.namespace != o.Namespace && f.namespace != database+".*":
	case len(f.kinds) > 0 && !slices.Contains(f.kinds, o.Kind):
	case f.opid != "" && f.opid != o.Number(), f.member != "" && f.member != o.Member:
	case f.comment != "" && !strings.Contains(o.Comment, f.comment), f.app != "" && f.app != o.App:
	default:
		return true
	}
	return false
}

// chosenOperations are those that a filter picks; it tells which members are silent.
func chosenOperations(ctx context.Context, d *deployment.Deployment, f opsFilter, stderr io.Writer) ([]operation.Operation, error) {
	all, silent, err := operation.List(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("list operations: %w", err)
	}
	if len(all) == 0 && len(silent) > 0 { // a member that tells lists at least the question
		return nil, fmt.Errorf("no member tells what it runs: %s: %s", silent[0].Member, silent[0].Why)
	}
	for _, s := range silent {
		fmt.Fprintf(stderr, "warning: %s does not tell what it runs: %s\n", s.Member, terminal.Text(s.Why))
	}
	return slices.DeleteFunc(all, func(o operation.Operation) bool { return !f.matches(&o) }), nil
}

func listOperations(ctx context.Context, d *deployment.Deployment, f opsFilter, asJSON bool, stdout, stderr io.Writer) error {
	list, err := chosenOperations(ctx, d, f, stderr)
	if err != nil {
		return err
	}
	for i := range list {
		if err := operation.Explain(ctx, d, &list[i]); err != nil && ctx.Err() != nil {
			return err
		}
	}
	if asJSON {
		return printJSON(stdout, shownOperations(list))
	}
	return printOperations(stdout, list, f)
}

func printOperations(w io.Writer, list []operation.Operation, f opsFilter) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, f.nothing())
		return err
	}
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "AGE\tMEMBER\tOPID\tKIND\tNAMESPACE\tPLAN\tAPP\tASKS FOR")
	for i := range list {
		o := &list[i]
		cells := []string{o.Age.Round(100 * time.Millisecond).String(), o.Member, o.Number(), o.Kind, o.Namespace, orElse(o.Plan, "not reported"), orElse(o.App, "-"), asksFor(o)}
		row(table, cells...)
	}
	return table.Flush()
}

// row writes a row of a table. Clients choose much of what stands in its cells.
func row(table io.Writer, cells ...string) {
	for i := range cells {
		cells[i] = terminal.Text(cells[i])
	}
	fmt.Fprintln(table, strings.Join(cells, "\t"))
}

// asksFor is an operation's shape, with what else there is to know of it.
func asksFor(o *operation.Operation) string {
	text := o.Shape
	if o.Comment != "" {
		text += fmt.Sprintf(" comment %q", o.Comment)
	}
	if o.Internal != "" {
		text += " (" + o.Internal + ")"
	}
	if o.Killed {
		text += " (killed, not ended yet)"
	}
	return text
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// shownOperation is an operation in JSON. What a member does not report is null.
type shownOperation struct {
	Member     string  `json:"member"`
	ID         string  `json:"opid"`
	Kind       string  `json:"kind"`
	Namespace  string  `json:"ns"`
	AgeSeconds float64 `json:"ageSeconds"`
	Plan       *string `json:"plan"`
	Examined   *int64  `json:"docsExamined"`
	Shape      string  `json:"shape"`
	Client     string  `json:"client"`
	App        string  `json:"appName"`
	User       string  `json:"user"`
	Comment    string  `json:"comment"`
	Internal   string  `json:"internal,omitempty"`
	Killed     bool    `json:"killPending"`
}

func shownOperations(list []operation.Operation) []shownOperation {
	shown := make([]shownOperation, len(list))
	for i := range list {
		o := &list[i]
		shown[i] = shownOperation{
			Member: o.Member, ID: o.Number(), Kind: o.Kind, Namespace: o.Namespace, AgeSeconds: o.Age.Seconds(), Shape: o.Shape, Client: o.Client, App: o.App,
			User: o.User, Comment: o.Comment, Internal: o.Internal, Killed: o.Killed,
		}
		if o.Plan != "" {
			shown[i].Plan = &o.Plan
		}
		if o.Examined >= 0 {
			shown[i].Examined = &o.Examined
		}
	}
	return shown
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// errStillRuns makes ops kill fail when something did not end.
var errStillRuns = errors.New("not everything has ended")

// killed is what became of one operation.
type killed struct {
	shownOperation
	Gone  bool   `json:"gone"`
	Error string `json:"error,omitempty"`
}

func killCommand(o *opsOptions) *cobra.Command {
	var f opsFilter
	c := &cobra.Command{
		Use:   "kill",
		Short: "Kill operations on the members where they run, and look whether they are gone",
		Long: "Kill an operation by its number, or all with a comment or of an application, each on the member where it runs, and look for 5 seconds whether it is\n" +
			"gone. What no application has sent is not killed. The number of an operation is one member's: where two have the same, --member says which.",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return o.on(c.Context(), func(ctx context.Context, d *deployment.Deployment) error {
				return killOperations(ctx, d, f, o.json, c.OutOrStdout(), c.ErrOrStderr())
			})
		},
	}
	c.Flags().StringVar(&f.opid, "opid", "", "the operation's number, as 'oxbow ops' shows it")
	c.Flags().StringVar(&f.member, "member", "", "on this member only")
	c.Flags().StringVar(&f.comment, "comment", "", "all whose comment has this in it")
	c.Flags().StringVar(&f.app, "app", "", "all of the application of that name")
	c.Flags().StringVar(&f.namespace, "ns", "", "of those only what is on DATABASE.COLLECTION or DATABASE.*")
	c.MarkFlagsOneRequired("opid", "comment", "app")
	return c
}

func killOperations(ctx context.Context, d *deployment.Deployment, f opsFilter, asJSON bool, stdout, stderr io.Writer) error {
	list, err := chosenOperations(ctx, d, f, stderr)
	if err != nil {
		return err
	}
	if f.opid != "" && len(list) > 1 {
		return fmt.Errorf("%d members run an operation %s: say which with --member", len(list), f.opid)
	}
	if len(list) == 0 {
		if err := unknownMember(ctx, d, f.member); err != nil {
			return err
		}
		return errors.New(f.nothing())
	}
	done := make([]killed, len(list))
	for i, shown := range shownOperations(list) {
		gone, err := operation.Kill(ctx, d, &list[i])
		done[i] = killed{shownOperation: shown, Gone: gone}
		if err != nil {
			done[i].Error = err.Error()
		}
	}
	if asJSON {
		err = printJSON(stdout, done)
	} else {
		err = printKilled(stdout, done)
	}
	if slices.ContainsFunc(done, func(k killed) bool { return !k.Gone }) {
		return errors.Join(err, errStillRuns)
	}
	return err
}

// unknownMember is an error that names the members that there are, where one that was asked for is none.
func unknownMember(ctx context.Context, d *deployment.Deployment, member string) error {
	if member == "" {
		return nil
	}
	members, err := d.Members(ctx)
	if err != nil {
		return err
	}
	var hosts []string
	for i := range members {
		hosts = append(hosts, members[i].Host)
	}
	if slices.Contains(hosts, member) {
		return nil
	}
	return fmt.Errorf("--member: there is no %q: there are %s", member, strings.Join(hosts, ", "))
}

func printKilled(w io.Writer, done []killed) error {
	for _, k := range done {
		what := "killed and gone"
		switch {
		case k.Error != "":
			what = "not killed: " + k.Error
		case !k.Gone:
			what = fmt.Sprintf("killed, and still there after %s", operation.KillPatience)
		}
		if _, err := fmt.Fprintln(w, terminal.Text(fmt.Sprintf("%s on %s, %s on %s: %s", k.ID, k.Member, k.Kind, k.Namespace, what))); err != nil {
			return err
		}
	}
	return nil
}
