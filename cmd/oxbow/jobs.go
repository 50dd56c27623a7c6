package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/backend/remote"
	"oxbow/internal/bson"
	"oxbow/internal/config"
	"oxbow/internal/maintain"
	"oxbow/internal/mongoerr"
	"oxbow/internal/terminal"
)

// jobsOptions are the flags of all commands on jobs.
type jobsOptions struct {
	uri, state string
	json       bool
}

func jobsCommand() *cobra.Command {
	var o jobsOptions
	c := &cobra.Command{
		Use: "jobs", Short: "See, pause, resume and stop jobs, and change their limits while they run",
		Long: "See, pause, resume and stop jobs, and change their limits while they run: those of the gateway that is asked, and those that the command line runs on a\n" +
			"deployment. Orders reach a job within about a second, wherever it runs.",
		Args: cobra.NoArgs, RunE: help,
	}
	f := c.PersistentFlags()
	f.StringVar(&o.uri, "uri", defaultURI, "connection string of a gateway or of the deployment that jobs work on")
	f.StringVar(&o.state, "state-db", maintain.DefaultDatabase, "database of the deployment in which the command line keeps jobs")
	f.BoolVar(&o.json, "json", false, "print JSON")
	c.AddCommand(o.listCommand(), o.showCommand(), o.historyCommand(), o.setCommand(), o.removeCommand(),
		o.orderCommand("pause", "Stop a job after its step, until it is resumed"),
		o.orderCommand("resume", "Let a job go on that was paused or stopped, has failed, or does not trust the clock"),
		o.stopCommand())
	return c
}

// jobsServer is where jobs are asked for: a gateway's own, by its commands, and those in a database.
type jobsServer struct {
	backend backend.Backend
	store   *maintain.Store
	gateway bool // it has jobs of its own
	own     []maintain.Status
}

// on asks a server for its jobs and runs something with it.
func (o *jobsOptions) on(ctx context.Context, run func(ctx context.Context, s *jobsServer) error) error {
	b, err := remote.OpenNamed("deployment", o.uri, slog.New(slog.DiscardHandler))
	if err != nil {
		return fmt.Errorf("connect to %s: %w", withoutPassword(o.uri), err)
	}
	defer b.Close()
	ctx, cancel := context.WithTimeout(ctx, 3*reachTime)
	defer cancel()
	s := &jobsServer{backend: b, store: maintain.NewStore(b, o.state)}
	first, cancelFirst := context.WithTimeout(ctx, reachTime)
	defer cancelFirst()
	if err := s.askGateway(first); err != nil {
		return fmt.Errorf("ask %s for its jobs: %w", withoutPassword(o.uri), err)
	}
	err = run(ctx, s)
	if errors.Is(err, maintain.ErrNoJob) {
		return fmt.Errorf("%w: 'oxbow jobs list' names those that there are", err)
	}
	return err
}

// askGateway asks for a gateway's own jobs. A server that is none does not know the command.
func (s *jobsServer) askGateway(ctx context.Context) error {
	var reply struct {
		Jobs []maintain.Status `bson:"jobs"`
	}
	err := s.command(ctx, driver.D{{Key: "listJobs", Value: 1}}, &reply)
	if mongoerr.Is(err, mongoerr.CommandNotFound) || mongoerr.Is(err, mongoerr.CommandNotSupported) {
		return nil
	}
	s.gateway, s.own = err == nil, reply.Jobs
	return err
}

// command runs a command on admin.
func (s *jobsServer) command(ctx context.Context, command driver.D, reply any) error {
	body, err := driver.Marshal(append(command, driver.E{Key: "$db", Value: "admin"}))
	if err != nil {
		return err
	}
	doc, err := s.backend.Run(ctx, &backend.Request{Body: body})
	if err == nil {
		err = backend.Check(doc)
	}
	if err != nil || reply == nil {
		return err
	}
	return driver.Unmarshal(doc, reply)
}

// list returns all jobs.
func (s *jobsServer) list(ctx context.Context) ([]maintain.Status, error) {
	kept, err := s.store.List(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	return append(s.own, kept...), nil
}

// owns reports whether a job is the gateway's.
func (s *jobsServer) owns(id string) bool {
	for i := range s.own {
		if s.own[i].ID == id {
			return true
		}
	}
	return false
}

func (s *jobsServer) get(ctx context.Context, id string) (maintain.Status, error) {
	for i := range s.own {
		if s.own[i].ID == id {
			return s.own[i], nil
		}
	}
	return s.store.Get(ctx, id, time.Now())
}

func (s *jobsServer) history(ctx context.Context, id string) ([]maintain.Entry, error) {
	if !s.owns(id) {
		if _, err := s.store.Get(ctx, id, time.Now()); err != nil {
			return nil, err
		}
		return s.store.History(ctx, id, 0)
	}
	var reply struct {
		Entries []maintain.Entry `bson:"entries"`
	}
	err := s.command(ctx, driver.D{{Key: "jobHistory", Value: id}}, &reply)
	return reply.Entries, err
}

// order gives a job an order, in the words of the gateway's command.
func (s *jobsServer) order(ctx context.Context, id string, order driver.D) error {
	if s.owns(id) {
		return s.command(ctx, append(driver.D{{Key: "orderJob", Value: id}}, order...), nil)
	}
	doc, err := driver.Marshal(order)
	if err != nil {
		return err
	}
	o, remove, err := maintain.ParseOrder(bson.Document(doc))
	switch {
	case err != nil:
		return err
	case remove:
		return s.store.Remove(ctx, id)
	}
	return s.store.Order(ctx, id, o)
}

func (o *jobsOptions) listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List all jobs: what they do, or why they don't", Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.on(c.Context(), func(ctx context.Context, s *jobsServer) error {
				list, err := s.list(ctx)
				if s.gateway && mongoerr.Is(err, mongoerr.Unauthorized) {
					fmt.Fprintf(c.ErrOrStderr(), "warning: jobs of the command line are not shown: %s\n", terminal.Text(err.Error()))
					list, err = s.own, nil
				}
				if err != nil {
					return err
				}
				if o.json {
					return printJSON(c.OutOrStdout(), list)
				}
				return printJobs(c.OutOrStdout(), list)
			})
		},
	}
}

func printJobs(w io.Writer, list []maintain.Status) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no jobs")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "JOB\tKIND\tON\tSTATE\tGONE\tLEFT\tRATE\tETA\tNEXT\tREASON")
	for i := range list {
		s := &list[i]
		reason := s.Reason
		if s.Alert != "" {
			reason = strings.TrimPrefix(reason+"; ALERT: "+s.Alert, "; ")
		}
		row(table, s.ID, s.Kind, dashed(s.Namespace), string(s.State), fmt.Sprint(s.Documents), remaining(s), jobRate(s), eta(s), moment(s.Next), dashed(reason))
	}
	return table.Flush()
}

func dashed(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func remaining(s *maintain.Status) string {
	if s.Remaining < 0 {
		return "-"
	}
	return fmt.Sprint(s.Remaining)
}

func jobRate(s *maintain.Status) string {
	if s.Rate == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f/s", s.Rate)
}

func eta(s *maintain.Status) string {
	if s.ETA == 0 {
		return "-"
	}
	return time.Duration(s.ETA * float64(time.Second)).Round(time.Second).String()
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

func (o *jobsOptions) showCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show JOB", Short: "Show all that is known of a job", Args: oneArgument("JOB"),
		RunE: func(c *cobra.Command, args []string) error {
			return o.on(c.Context(), func(ctx context.Context, s *jobsServer) error {
				status, err := s.get(ctx, args[0])
				if err != nil {
					return err
				}
				if o.json {
					return printJSON(c.OutOrStdout(), status)
				}
				return printJob(c.OutOrStdout(), &status)
			})
		},
	}
}

func printJob(w io.Writer, s *maintain.Status) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	line := func(name, text string) {
		if text != "" && text != "-" {
			row(table, name, text)
		}
	}
	line("job", s.ID)
	line("kind", s.Kind)
	line("on", s.Namespace)
	line("state", string(s.State))
	line("reason", s.Reason)
	line("alert", s.Alert)
	line("run by", s.Owner)
	line("next", moment(s.Next))
	line("windows", strings.Join(s.Windows, "; "))
	line("priority", fmt.Sprint(s.Priority))
	line("limits", limitsText(s.Limits))
	line("this pass", fmt.Sprintf("begun %s, %d steps, %d documents, %s", moment(s.Begun), s.Steps, s.Documents, size(s.Bytes)))
	for _, skip := range s.Skipped {
		line("skipped", fmt.Sprintf("%d: %s", skip.Count, skip.Reason))
	}
	line("left", remaining(s))
	line("rate", jobRate(s))
	line("to go", eta(s))
	if s.Owner != "" {
		line("pace", fmt.Sprintf("%.0f %% of the full one", 100*s.Share))
	}
	if s.Failures > 0 {
		line("failures", fmt.Sprintf("%d in a row", s.Failures))
	}
	if s.Last != nil {
		line("last", entryLine(s.Last))
	}
	for _, undo := range s.Undo {
		line("undo", undo)
	}
	return table.Flush()
}

func limitsText(l maintain.Limits) string {
	var parts []string
	if l.Documents > 0 {
		parts = append(parts, strconv.FormatFloat(l.Documents, 'f', -1, 64)+" documents/s")
	}
	if l.Bytes > 0 {
		parts = append(parts, size(int64(l.Bytes))+"/s")
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func (o *jobsOptions) historyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "history JOB", Short: "Show what a job did lately, and why it ended each time", Args: oneArgument("JOB"),
		RunE: func(c *cobra.Command, args []string) error {
			return o.on(c.Context(), func(ctx context.Context, s *jobsServer) error {
				entries, err := s.history(ctx, args[0])
				if err != nil {
					return err
				}
				if o.json {
					return printJSON(c.OutOrStdout(), entries)
				}
				if len(entries) == 0 {
					fmt.Fprintln(c.OutOrStdout(), "nothing yet")
				}
				for i := range entries {
					fmt.Fprintln(c.OutOrStdout(), entryLine(&entries[i]))
				}
				return nil
			})
		},
	}
}

// entryLine tells an entry in a line.
func entryLine(e *maintain.Entry) string {
	line := fmt.Sprintf("%s  %s after %s: %d steps, %d documents", moment(e.End), e.State, e.End.Sub(e.Begin).Round(time.Millisecond), e.Steps, e.Documents)
	for _, skip := range e.Skipped {
		line += fmt.Sprintf(", %d skipped (%s)", skip.Count, skip.Reason)
	}
	if e.Reason != "" {
		line += "; " + e.Reason
	}
	return terminal.Text(line)
}

// orderCommand is a command that gives one order.
func (o *jobsOptions) orderCommand(name, short string) *cobra.Command {
	return &cobra.Command{
		Use: name + " JOB", Short: short, Args: oneArgument("JOB"),
		RunE: func(c *cobra.Command, args []string) error {
			return o.give(c, name, args[0], driver.D{{Key: name, Value: true}})
		},
	}
}

func (o *jobsOptions) stopCommand() *cobra.Command {
	var now bool
	c := &cobra.Command{
		Use: "stop JOB", Short: "Stop a job after its step, or with --now at once, until it is resumed or run again", Args: oneArgument("JOB"),
		RunE: func(c *cobra.Command, args []string) error {
			return o.give(c, "stop", args[0], driver.D{{Key: "stop", Value: true}, {Key: "now", Value: now}})
		},
	}
	c.Flags().BoolVar(&now, "now", false, "kill what is in flight, where it runs")
	return c
}

func (o *jobsOptions) removeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "remove JOB", Short: "Forget a job that nobody runs, with its checkpoint and its history", Args: oneArgument("JOB"),
		RunE: func(c *cobra.Command, args []string) error {
			return o.give(c, "remove", args[0], driver.D{{Key: "remove", Value: true}})
		},
	}
}

func (o *jobsOptions) setCommand() *cobra.Command {
	var documents, bytes string
	var priority int
	c := &cobra.Command{
		Use: "set JOB", Short: "Change a job's limits and priority, also while it runs", Args: oneArgument("JOB"),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("priority") && (priority < 1 || priority > maintain.MaxPriority) {
				return fmt.Errorf("--priority: %d is not from 1 to %d", priority, maintain.MaxPriority)
			}
			order, err := limitOrder(documents, bytes, priority)
			if err != nil {
				return err
			}
			return o.give(c, "set", args[0], order)
		},
	}
	c.Flags().StringVar(&documents, "limit-documents", "", "documents a second at most, such as 5000/s; 0: no limit")
	c.Flags().StringVar(&bytes, "limit-bytes", "", "bytes of oplog a second at most, such as 10MiB/s; 0: no limit")
	c.Flags().IntVar(&priority, "priority", 0, fmt.Sprintf("from 1 to %d", maintain.MaxPriority))
	c.MarkFlagsOneRequired("limit-documents", "limit-bytes", "priority")
	return c
}

func limitOrder(documents, bytes string, priority int) (driver.D, error) {
	var order driver.D
	if documents != "" {
		var n float64
		var err error
		if n, err = strconv.ParseFloat(strings.TrimSuffix(documents, "/s"), 64); err != nil || !(n >= 0) || math.IsInf(n, 1) {
			return nil, fmt.Errorf("--limit-documents: %q is no number of documents a second, such as 5000/s", documents)
		}
		order = append(order, driver.E{Key: "documents", Value: n})
	}
	if bytes != "" {
		n := int64(0)
		if text := strings.TrimSuffix(bytes, "/s"); text != "0" {
			var err error
			if n, err = config.ParseSize(text); err != nil {
				return nil, fmt.Errorf("--limit-bytes: %w", err)
			}
		}
		order = append(order, driver.E{Key: "bytes", Value: float64(n)})
	}
	if priority != 0 {
		order = append(order, driver.E{Key: "priority", Value: int64(priority)})
	}
	return order, nil
}

// give gives an order and tells that it was.
func (o *jobsOptions) give(c *cobra.Command, name, id string, order driver.D) error {
	return o.on(c.Context(), func(ctx context.Context, s *jobsServer) error {
		if name == "resume" {
			status, err := s.get(ctx, id)
			if err == nil && status.State == maintain.Done {
				err = fmt.Errorf("%s is done, so there is nothing to resume: it begins when it is run again", terminal.Text(id))
			}
			if err != nil {
				return err
			}
		}
		if err := s.order(ctx, id, order); err != nil {
			return err
		}
		_, err := fmt.Fprintf(c.OutOrStdout(), "ordered: %s %s\n", name, terminal.Text(id))
		return err
	})
}
