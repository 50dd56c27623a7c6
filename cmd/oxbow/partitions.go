package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

func partitionsCommand() *cobra.Command {
	var uri string
	c := &cobra.Command{
		Use: "partitions", Short: "List, make, hide, bring back and drop the partitions of a collection, and see what retention does",
		Args: cobra.NoArgs, RunE: help,
	}
	c.PersistentFlags().StringVar(&uri, "uri", defaultURI, "connection string of the gateway")
	on := func(run func(ctx context.Context, w io.Writer, p *partitions) error) func(*cobra.Command, []string) error {
		return func(c *cobra.Command, args []string) error {
			p, err := openPartitions(c.Context(), uri, args[0])
			if err != nil {
				return err
			}
			defer p.client.Disconnect(context.Background())
			return run(c.Context(), c.OutOrStdout(), p)
		}
	}
	c.AddCommand(listPartitions(on), createPartitions(on), dropPartitions(on), undoPartition(on), upkeepHistory(on), confirmRetention(on))
	return c
}

// onCollection makes a cobra run function of one that works on a collection's partitions.
type onCollection func(func(context.Context, io.Writer, *partitions) error) func(*cobra.Command, []string) error

// partitions are the partitions of one collection, as the gateway shows them.
type partitions struct {
	client     *mongo.Client
	database   *mongo.Database
	collection string
}

// partition is one row of listPartitions.
type partition struct {
	Name       string    `bson:"name"`
	Backend    string    `bson:"backend"`
	State      string    `bson:"state"`
	Since      time.Time `bson:"since"`
	Start      time.Time `bson:"start"`
	End        time.Time `bson:"end"`
	Slot       *int32    `bson:"slot"`
	Generation int32     `bson:"generation"`
	Count      int64     `bson:"count"`
	Size       int64     `bson:"size"`
}

func openPartitions(ctx context.Context, uri, ns string) (*partitions, error) {
	c, err := openCollection(ctx, uri, ns)
	if err != nil {
		return nil, err
	}
	return &partitions{c.Database().Client(), c.Database(), c.Name()}, nil
}

// list returns all partitions, oldest first.
func (p *partitions) list(ctx context.Context) ([]partition, error) {
	cursor, err := p.database.RunCommandCursor(ctx, bson.D{{Key: "listPartitions", Value: p.collection}, {Key: "stats", Value: true}})
	if err != nil {
		return nil, fmt.Errorf("list partitions: %w", err)
	}
	var all []partition
	if err := cursor.All(ctx, &all); err != nil {
		return nil, fmt.Errorf("list partitions: %w", err)
	}
	return all, nil
}

// do runs one of the gateway's commands on a partition.
func (p *partitions) do(ctx context.Context, command, name string) error {
	err := p.database.RunCommand(ctx, bson.D{{Key: command, Value: p.collection}, {Key: "partition", Value: name}}).Err()
	if err != nil {
		return fmt.Errorf("%s %s: %w", command, name, err)
	}
	return nil
}

func listPartitions(on onCollection) *cobra.Command {
	return &cobra.Command{
		Use: "list DB.COLL", Short: "List all partitions, oldest first", Args: oneArgument("DB.COLL"),
		RunE: on(func(ctx context.Context, w io.Writer, p *partitions) error {
			all, err := p.list(ctx)
			if err != nil {
				return err
			}
			return printPartitions(w, all)
		}),
	}
}

func printPartitions(w io.Writer, all []partition) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tBACKEND\tSTATE\tSTART\tEND\tSLOT\tDOCUMENTS\tBYTES")
	for _, p := range all {
		start, end, slot := "-", "-", "-"
		if !p.End.IsZero() {
			start, end = p.Start.UTC().Format(time.RFC3339), p.End.UTC().Format(time.RFC3339)
		}
		if p.Slot != nil {
			slot = fmt.Sprint(*p.Slot)
		}
		row(table, p.Name, p.Backend, p.State, start, end, slot, fmt.Sprint(p.Count), fmt.Sprint(p.Size))
	}
	return table.Flush()
}

// missingField is the code of the error for a command without a field that it needs.
const missingField = 40414

func createPartitions(on onCollection) *cobra.Command {
	var from, to string
	c := &cobra.Command{
		Use: "create DB.COLL", Short: "Make the partitions of a range of time, or all slots of a hash layout", Args: oneArgument("DB.COLL"),
	}
	c.RunE = on(func(ctx context.Context, w io.Writer, p *partitions) error {
		command := bson.D{{Key: "createPartitions", Value: p.collection}}
		for _, bound := range []struct{ name, text string }{{"from", from}, {"to", to}} {
			if bound.text == "" {
				continue
			}
			t, err := instant(bound.text)
			if err != nil {
				return fmt.Errorf("--%s: %w", bound.name, err)
			}
			command = append(command, bson.E{Key: bound.name, Value: t})
		}
		var made struct {
			Made int32 `bson:"made"`
		}
		err := p.database.RunCommand(ctx, command).Decode(&made)
		if refused := (mongo.CommandError{}); errors.As(err, &refused) && refused.HasErrorCode(missingField) {
			return fmt.Errorf("create partitions: a layout by time needs --from and --to: %w", err)
		}
		if err != nil {
			return fmt.Errorf("create partitions: %w", err)
		}
		fmt.Fprintf(w, "%d partitions made\n", made.Made)
		return nil
	})
	c.Flags().StringVar(&from, "from", "", "first instant, as 2001-02-01 or 2001-02-01T00:00:00Z")
	c.Flags().StringVar(&to, "to", "", "instant behind the last")
	return c
}

// instant reads a date (00:00 UTC) or an RFC 3339 time.
func instant(text string) (time.Time, error) {
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("%q is neither a date (2001-02-01) nor a time (2001-02-01T00:00:00Z)", text)
	}
	return t, nil
}

func dropPartitions(on onCollection) *cobra.Command {
	var before, name string
	var now bool
	c := &cobra.Command{
		Use:   "drop DB.COLL",
		Short: "Hide partitions, or with --now drop them for good",
		Long: "Hide the partitions that end at or before an instant, or one by name: their documents are out of sight at once, and dropped when the collection's\n" +
			"hold has passed; until then 'oxbow partitions undo' brings them back. With --now they are dropped at once, for good.",
		Args: oneArgument("DB.COLL"),
	}
	c.RunE = on(func(ctx context.Context, w io.Writer, p *partitions) error {
		chosen, err := p.choose(ctx, before, name, now)
		if err != nil {
			return err
		}
		command, done := "hidePartition", "hidden"
		if now {
			command, done = "dropPartition", "dropped"
		}
		for _, c := range chosen {
			if err := p.do(ctx, command, c.Name); err != nil {
				return err
			}
			fmt.Fprintf(w, "%s: %s, %d documents\n", done, c.Name, c.Count)
		}
		fmt.Fprintf(w, "%d partitions %s\n", len(chosen), done)
		return nil
	})
	c.Flags().StringVar(&before, "before", "", "partitions that end at or before this instant, as 2001-02-01 or 2001-02-01T00:00:00Z")
	c.Flags().StringVar(&name, "name", "", "one partition, by its name in 'oxbow partitions list'")
	c.Flags().BoolVar(&now, "now", false, "drop for good instead of hiding")
	c.MarkFlagsOneRequired("before", "name")
	c.MarkFlagsMutuallyExclusive("before", "name")
	return c
}

// choose picks the partitions that drop is about; hidden ones only when they are to be dropped for good.
func (p *partitions) choose(ctx context.Context, before, name string, hiddenToo bool) ([]partition, error) {
	var limit time.Time
	if before != "" {
		var err error
		if limit, err = instant(before); err != nil {
			return nil, fmt.Errorf("--before: %w", err)
		}
	}
	all, err := p.list(ctx)
	if err != nil {
		return nil, err
	}
	if before != "" && len(all) > 0 && !slices.ContainsFunc(all, func(c partition) bool { return !c.End.IsZero() }) {
		return nil, fmt.Errorf("--before: %s.%s is not split by time: choose a partition by --name", p.database.Name(), p.collection)
	}
	var chosen []partition
	for _, c := range all {
		wanted := c.State == "active" || hiddenToo && c.State == "hidden"
		ends := name == "" && !c.End.IsZero() && !c.End.After(limit)
		if c.Name == name || wanted && ends {
			chosen = append(chosen, c)
		}
	}
	if name != "" && len(chosen) == 0 {
		return nil, fmt.Errorf("%s.%s has no partition %q", p.database.Name(), p.collection, name)
	}
	return chosen, nil
}

func undoPartition(on onCollection) *cobra.Command {
	var name string
	var all bool
	c := &cobra.Command{Use: "undo DB.COLL", Short: "Bring hidden partitions back", Args: oneArgument("DB.COLL")}
	c.RunE = on(func(ctx context.Context, w io.Writer, p *partitions) error {
		names := []string{name}
		if all {
			list, err := p.list(ctx)
			if err != nil {
				return err
			}
			names = hiddenNames(list)
		}
		for _, n := range names {
			if err := p.do(ctx, "undoPartition", n); err != nil {
				return err
			}
			fmt.Fprintf(w, "back: %s\n", n)
		}
		return nil
	})
	c.Flags().StringVar(&name, "name", "", "one partition, by its name in 'oxbow partitions list'")
	c.Flags().BoolVar(&all, "all", false, "all hidden partitions")
	c.MarkFlagsOneRequired("all", "name")
	c.MarkFlagsMutuallyExclusive("all", "name")
	return c
}

func hiddenNames(all []partition) []string {
	var names []string
	for _, p := range all {
		if p.State == "hidden" {
			names = append(names, p.Name)
		}
	}
	return names
}
