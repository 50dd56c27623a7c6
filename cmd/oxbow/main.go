// Command oxbow is the gateway and its tools.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// help is what a command does that only has subcommands; with Args: cobra.NoArgs an unknown one is an error.
func help(c *cobra.Command, _ []string) error { return c.Help() }

func main() {
	if err := rootCommand().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "oxbow:", err)
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "oxbow",
		Short:         "A gateway for MongoDB collections that outgrow MongoDB's defaults",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(serveCommand(), checkCommand(), partitionsCommand(), loadCommand(), passwordCommand(), benchCommand(), demoCommand())
	return root
}
