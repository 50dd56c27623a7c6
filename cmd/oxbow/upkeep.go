package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bench"
)

// history is the reply of upkeepHistory.
type history struct {
	Events  []bench.Event `bson:"events"`
	Stopped string        `bson:"stopped"`
}

func upkeepHistory(on onCollection) *cobra.Command {
	return &cobra.Command{
		Use: "history DB.COLL", Short: "Show what retention did to the partitions lately, and why", Args: oneArgument("DB.COLL"),
		RunE: on(func(ctx context.Context, w io.Writer, p *partitions) error {
			var h history
			if err := p.database.RunCommand(ctx, bson.D{{Key: "upkeepHistory", Value: p.collection}}).Decode(&h); err != nil {
				return fmt.Errorf("ask for the history: %w", err)
			}
			if len(h.Events) == 0 {
				fmt.Fprintln(w, "nothing since the gateway's start")
			}
			for _, e := range h.Events {
				fmt.Fprintln(w, eventLine(&e))
			}
			if h.Stopped != "" {
				fmt.Fprintf(w, "retention has stopped: %s\n", h.Stopped)
			}
			return nil
		}),
	}
}

// eventLine tells an event in a line.
func eventLine(e *bench.Event) string {
	line := e.At.UTC().Format(time.RFC3339) + "  " + e.Action
	if e.Partition != "" {
		line += " " + e.Partition
	}
	line += fmt.Sprintf(" in %s: %s", milliseconds(e.Took()), e.Reason)
	if e.Error != "" {
		line += ": failed: " + e.Error
	}
	return line
}

func confirmRetention(on onCollection) *cobra.Command {
	return &cobra.Command{
		Use:   "confirm DB.COLL",
		Short: "Let retention go on past the reason that it has stopped for",
		Long: "Let retention go on past the reason that it has stopped for: that the clock jumped, or that more partitions are due at once than is usual. Look at\n" +
			"'oxbow partitions history' and the clock before.",
		Args: oneArgument("DB.COLL"),
		RunE: on(func(ctx context.Context, w io.Writer, p *partitions) error {
			var reply struct {
				Confirmed string `bson:"confirmed"`
			}
			if err := p.database.RunCommand(ctx, bson.D{{Key: "confirmRetention", Value: p.collection}}).Decode(&reply); err != nil {
				return fmt.Errorf("confirm: %w", err)
			}
			if reply.Confirmed == "" {
				fmt.Fprintln(w, "retention had not stopped")
				return nil
			}
			fmt.Fprintf(w, "confirmed: %s\n", reply.Confirmed)
			return nil
		}),
	}
}
