package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// interruptible is a command's context, which ends with ctrl-C or SIGTERM.
func interruptible(c *cobra.Command) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
}

// untilSignal is what a command does that is interruptible.
func untilSignal(run func(ctx context.Context, stdout, stderr io.Writer) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, _ []string) error {
		ctx, stop := interruptible(c)
		defer stop()
		return run(ctx, c.OutOrStdout(), c.ErrOrStderr())
	}
}
