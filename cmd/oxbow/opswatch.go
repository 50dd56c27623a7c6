package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oxbow/internal/deployment"
	"oxbow/internal/maintain/kill"
	"oxbow/internal/terminal"
)

// watchOptions are the flags of ops watch.
type watchOptions struct {
	policy kill.Policy
	action string
	dryRun bool
	every  time.Duration
	length time.Duration
}

func watchCommand(o *opsOptions) *cobra.Command {
	var w watchOptions
	c := &cobra.Command{
		Use:   "watch",
		Short: "Look again and again for operations that read a large collection for want of an index, and tell of them or kill them",
		Long: "Look every second for operations that read a large collection for want of an index and run for longer than a while, and tell of them, or kill them on the\n" +
			"member where they run. What is known to use an index is left alone, so is what no application has sent, and what has oxbow:allow-scan in its comment.\n\n" +
			"A gateway does the same as a job of its configuration, which keeps a history (docs/ops.md).",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if w.policy.Action, err = kill.ParseAction(w.action); err != nil {
				return fmt.Errorf("--action: %w", err)
			}
			if w.every <= 0 || w.policy.Older <= 0 || w.policy.Documents <= 0 || w.length < 0 {
				return errors.New("--every, --older and --documents must be above 0, and --for not negative")
			}
			ctx, stop := interruptible(c)
			defer stop()
			if w.length > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, w.length)
				defer cancel()
			}
			return o.on(ctx, func(ctx context.Context, d *deployment.Deployment) error {
				return watchOperations(ctx, d, w, o.json, c.OutOrStdout(), c.ErrOrStderr())
			})
		},
	}
	f := c.Flags()
	f.StringSliceVar(&w.policy.Kinds, "kind", nil, "of these kinds: remove, update, find, count, aggregate (default all of them)")
	f.StringSliceVar(&w.policy.Namespaces, "ns", nil, "on DATABASE.COLLECTION or DATABASE.* (default all)")
	f.Int64Var(&w.policy.Documents, "documents", kill.DefaultDocuments, "on collections with more documents")
	f.DurationVar(&w.policy.Older, "older", kill.DefaultOlder, "that run for longer")
	f.StringVar(&w.action, "action", "log", "log, alert or kill")
	f.BoolVar(&w.dryRun, "dry-run", false, "kill nothing, tell what would be killed")
	f.DurationVar(&w.every, "every", time.Second, "between two looks")
	f.DurationVar(&w.length, "for", 0, "stop after that time; 0: at ctrl-C")
	return c
}

// watchOperations looks until ctx ends, which is no failure.
func watchOperations(ctx context.Context, d *deployment.Deployment, w watchOptions, asJSON bool, stdout, stderr io.Writer) error {
	w.policy.Name = "ops watch"
	job, err := kill.New(kill.Options{
		Deployment: d, Policies: []kill.Policy{w.policy}, DryRun: w.dryRun, Every: w.every,
		Note: func(e kill.Event) { printEvent(stdout, e, asJSON) },
	})
	if err != nil {
		return err
	}
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	told := ""
	for {
		_, err := job.Look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && err.Error() != told:
			told = err.Error()
			fmt.Fprintf(stderr, "warning: %s\n", terminal.Text(err.Error()))
		case err == nil:
			told = ""
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// printEvent prints an event, as a line of JSON or of text.
func printEvent(w io.Writer, e kill.Event, asJSON bool) {
	if asJSON {
		line, err := json.Marshal(e)
		if err == nil {
			fmt.Fprintf(w, "%s\n", line)
		}
		return
	}
	what := map[string]string{"log": "seen", "alert": "ALERT", "kill": "killed and gone"}[e.Action]
	switch {
	case e.DryRun:
		what = "would be killed"
	case e.Error != "":
		what = "not killed: " + e.Error
	case e.Action == "kill":
		what += fmt.Sprintf(" in %d ms", e.Took)
	}
	at := strings.Join([]string{e.At.UTC().Format(time.RFC3339), e.Member, e.Operation, e.Kind, e.Namespace, e.Shape}, "  ")
	fmt.Fprintln(w, terminal.Text(at+": "+what+": "+e.Reason))
}
