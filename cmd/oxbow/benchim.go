package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"oxbow/internal/bench"
	"oxbow/internal/bench/im"
)

// imOptions are the flags of bench im.
type imOptions struct {
	uri, ns  string
	whenRead string
	json     bool
	im.Options
}

func benchIMCommand() *cobra.Command {
	var o imOptions
	c := &cobra.Command{
		Use:   "im",
		Short: "The load of offline messages: write, read, mark or delete",
		Long: "Write messages for users who are away, log each user in now and then, read what has come, and delete it or mark it as read, on Oxbow or any other\n" +
			"MongoDB server, through the official driver.\n\n" +
			"A message has _id (an ObjectId), msgid, fromuid, touid, timestamp, flag (0: not read) and msgcontent; an index is made on touid. Receivers are random;\n" +
			"logins are spread evenly, over time and over users. A login reads the messages with its touid, with --when-read mark those with flag 0, in the order of\n" +
			"timestamp, and then deletes them or sets flag 1, by touid and _id. A layout, if there should be one, is the gateway's configuration.\n\n" +
			"The load is open-loop: writes and logins have their times, and their latencies count from then. What is marked stays: the collection grows, and with it\n" +
			"what each login has to look through. Run both ways, each on a collection of its own, and compare.",
		Args: noArguments,
		RunE: untilSignal(func(ctx context.Context, stdout, stderr io.Writer) error { return runBenchIM(ctx, o, stdout, stderr) }),
	}
	f := c.Flags()
	f.StringVar(&o.uri, "uri", defaultURI, "connection string")
	f.StringVar(&o.ns, "ns", "im.offline_msg", "namespace, DATABASE.COLLECTION")
	f.StringVar(&o.whenRead, "when-read", "delete", "what becomes of a message that was read: delete or mark")
	f.IntVar(&o.Messages, "messages", 1000, "messages written a second")
	f.IntVar(&o.Logins, "logins", 200, "logins a second")
	f.IntVar(&o.Users, "users", 20_000, "users; each logs in once in users/logins seconds")
	f.DurationVar(&o.Duration, "duration", 5*time.Minute, "length of the load; 0: until ctrl-C")
	f.IntVar(&o.Workers, "workers", 4, "calls at a time, of writes and of logins each")
	f.IntVar(&o.Size, "size", 4096, "bytes of a message's document")
	f.BoolVar(&o.json, "json", false, "print the result as JSON")
	return c
}

func (o *imOptions) check() error {
	for name, n := range map[string]int{"messages": o.Messages, "logins": o.Logins, "users": o.Users, "workers": o.Workers, "size": o.Size} {
		if n < 1 {
			return fmt.Errorf("--%s must be at least 1", name)
		}
	}
	if o.Duration < 0 {
		return errors.New("--duration must not be negative")
	}
	if o.whenRead != "delete" && o.whenRead != "mark" {
		return fmt.Errorf("--when-read %q: delete or mark", o.whenRead)
	}
	o.Mark = o.whenRead == "mark"
	return nil
}

func runBenchIM(ctx context.Context, o imOptions, stdout, stderr io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	collection, err := openCollection(ctx, o.uri, o.ns)
	if err != nil {
		return err
	}
	defer collection.Database().Client().Disconnect(context.Background())
	b, err := im.Start(ctx, collection, o.Options)
	if err != nil {
		return err
	}
	showBenchIM(b, o.whenRead, stderr)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	result, err := b.Wait(ctx)
	return errors.Join(err, printResult(stdout, o.json, result))
}

// showBenchIM prints a line of progress now and then until the load has ended.
func showBenchIM(b *im.Bench, whenRead string, w io.Writer) {
	start, before := time.Now(), im.Totals{}
	ticker := time.NewTicker(lineEvery)
	defer ticker.Stop()
	for {
		select {
		case <-b.Done():
			return
		case <-ticker.C:
		}
		now := b.Totals()
		fmt.Fprintf(w, "%s: messages/s: %s written, %s read, %s %s; %d failed\n", bench.Seconds(time.Since(start).Seconds()),
			perSecond(now.Written-before.Written, lineEvery), perSecond(now.Read-before.Read, lineEvery), perSecond(now.Settled-before.Settled, lineEvery),
			map[string]string{"mark": "marked", "delete": "deleted"}[whenRead], now.Failed)
		before = now
	}
}
