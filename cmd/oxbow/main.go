// Command oxbow is the gateway and its tools.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"oxbow/internal/terminal"
)

// help is what a command does that only has subcommands; with Args: cobra.NoArgs an unknown one is an error.
func help(c *cobra.Command, _ []string) error { return c.Help() }

// oneArgument takes one argument, which the usage calls by that name.
func oneArgument(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s takes one argument, %s, and was given %d: see %s --help", c.Name(), name, len(args), c.CommandPath())
		}
		return nil
	}
}

// noArguments takes none, and tells who gives a configuration as one how to.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if c.Flags().Lookup("config") != nil {
		return fmt.Errorf("%s takes no argument, and was given %q: a configuration goes with -c", c.Name(), args[0])
	}
	return fmt.Errorf("%s takes no argument, and was given %q: see %s --help", c.Name(), args[0], c.CommandPath())
}

// noEmptyText refuses flags that were given an empty text, as an unset variable of a shell is: they would be taken for flags that were not given.
func noEmptyText(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.Value.String() == "" {
			err = fmt.Errorf("--%s was given an empty text: leave it out, or give it a value", f.Name)
		}
	})
	return err
}

func main() {
	if err := rootCommand().Execute(); err != nil {
		fmt.Fprintln(terminal.Lines(os.Stderr), "oxbow:", err)
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "oxbow",
		Short:         "A gateway for MongoDB collections that outgrow MongoDB's defaults",
		SilenceUsage:  true,
		SilenceErrors: true,

		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return noEmptyText(c) },
	}
	root.AddCommand(serveCommand(), checkCommand(), partitionsCommand(), loadCommand(), passwordCommand(), benchCommand(), demoCommand(), opsCommand(), observeCommand(), purgeCommand(), jobsCommand())
	return root
}
