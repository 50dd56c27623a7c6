package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"oxbow/internal/deployment"
	"oxbow/internal/survey"
	"oxbow/internal/terminal"
)

// observeOptions are the flags of observe.
type observeOptions struct {
	uri    string
	json   bool
	page   string
	backup time.Duration
	resync int64 // MiB a second
	survey.Options
}

func observeCommand() *cobra.Command {
	var o observeOptions
	c := &cobra.Command{
		Use:   "observe",
		Short: "Look at a deployment, reading only, and say what is wrong with it and what mends it",
		Long: "Look at a MongoDB deployment, with or without a gateway, and say what is wrong: members that are down or behind, majorities that one failure breaks, an oplog\n" +
			"that is too short, disks that fill, operations without an index, TTL that does not keep up, times of several types, files full of holes, collections that\n" +
			"change all the time, indexes larger than their data. Each finding has its evidence and the command that mends it (docs/observe.md).\n\n" +
			"Nothing is changed. A hidden secondary is asked where there is one, else a secondary; of each collection the figures and a few hundred documents are read.",
		Args: noArguments,
		RunE: untilSignal(func(ctx context.Context, stdout, stderr io.Writer) error {
			d, closeAll, err := openDeployment(ctx, o.uri)
			if err != nil {
				return err
			}
			defer closeAll()
			return observe(ctx, d, o, stdout, stderr)
		}),
	}
	f := c.Flags()
	f.StringVar(&o.uri, "uri", defaultURI, "connection string")
	f.BoolVar(&o.json, "json", false, "print all figures and findings as JSON")
	f.StringVar(&o.page, "html", "", "write a page to this file as well")
	f.StringSliceVar(&o.Namespaces, "ns", nil, "look at DATABASE.COLLECTION or DATABASE.* only")
	f.IntVar(&o.Collections, "collections", survey.DefaultCollections, "collections looked at, at most")
	f.DurationVar(&o.Between, "for", survey.DefaultBetween, "time between two looks at what changes; 0: one look")
	f.DurationVar(&o.Pace, "pace", survey.DefaultPace, "rest between two collections")
	f.DurationVar(&o.backup, "backup", 0, "how long a backup takes, which the oplog has to cover")
	f.Int64Var(&o.resync, "resync", survey.DefaultThresholds.ResyncBytes>>20, "MiB a second that a new member copies, which the oplog has to cover")
	return c
}

// observe gathers, finds and prints.
func observe(ctx context.Context, d *deployment.Deployment, o observeOptions, stdout, stderr io.Writer) error {
	thresholds := survey.DefaultThresholds
	if o.resync < 1 || o.backup < 0 || o.Collections < 1 {
		return errors.New("--resync and --collections must be at least 1, and --backup not negative")
	}
	thresholds.Backup, thresholds.ResyncBytes = o.backup, o.resync<<20
	if f, ok := stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		o.Progress = func(what string) { fmt.Fprintf(stderr, "\r\x1b[K%s", terminal.Text(what)) }
		defer fmt.Fprint(stderr, "\r\x1b[K")
	}
	s, err := survey.Gather(ctx, d, o.Options)
	if err != nil {
		return fmt.Errorf("observe: %w", err)
	}
	r := survey.Report{Survey: s, Findings: survey.Find(s, thresholds, withoutPassword(o.uri))}
	if o.page != "" {
		if err := writePage(o.page, &r); err != nil {
			return err
		}
	}
	if o.json {
		return printJSON(stdout, r)
	}
	return r.Print(terminal.Lines(stdout))
}

// writePage writes a report as a page to a file.
func writePage(file string, r interface{ Page(io.Writer) error }) error {
	var b strings.Builder
	err := r.Page(&b)
	if err == nil {
		err = os.WriteFile(file, []byte(b.String()), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
