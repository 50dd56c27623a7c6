package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"oxbow"
	"oxbow/internal/config"
)

// errRefused makes check fail after it has printed why.
var errRefused = errors.New("the configuration asks for more than can be carried")

func checkCommand() *cobra.Command {
	var file string
	var live bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Check a configuration and compute what its layouts come to",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := config.Load(file)
			if err != nil {
				return err
			}
			if err := errors.Join(oxbow.CheckFiles(cfg), oxbow.CheckJobs(cfg)); err != nil {
				return err
			}
			err = check(c.OutOrStdout(), cfg)
			if live {
				err = errors.Join(err, checkLive(c.OutOrStdout(), oxbow.Ask(c.Context(), cfg)))
			}
			return err
		},
	}
	c.Flags().StringVarP(&file, "config", "c", "", "configuration file (YAML)")
	c.Flags().BoolVar(&live, "live", false, "also ask the deployments behind the backends what they are")
	c.MarkFlagRequired("config")
	return c
}

// check prints a line a collection and then the advice.
func check(w io.Writer, cfg *config.Config) error {
	if len(cfg.Collections) == 0 {
		_, err := fmt.Fprintln(w, "no layouts: all collections are plain")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "COLLECTION\tRANGES\tPARTITIONS\tON ONE BACKEND\tFILES THERE")
	for i := range cfg.Collections {
		c := &cfg.Collections[i]
		cost := c.Cost(0)
		grows := ""
		if !cost.Bounded {
			grows = " and growing: no keep"
		}
		fmt.Fprintf(table, "%s\t%d%s\t%d\t%d\t%d\n", c.Namespace(), cost.Ranges, grows, cost.Partitions, cost.PerBackend, cost.Files)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	refused := false
	for _, a := range cfg.Check(nil) {
		kind := "warning"
		if a.Refused {
			kind, refused = "error", true
		}
		fmt.Fprintf(w, "%s: %s: %s\n", kind, a.Collection, a.Message)
	}
	if refused {
		return errRefused
	}
	return nil
}
