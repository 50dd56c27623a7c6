// Command oxbow is the gateway and its tools.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

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
	root.AddCommand(serveCommand(), checkCommand(), partitionsCommand(), loadCommand(), benchCommand(), demoCommand())
	return root
}
