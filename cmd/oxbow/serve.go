package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"oxbow"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	file   string
	listen string
	grace  time.Duration
}

func serveCommand() *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the MongoDB wire protocol",
		Long: "Serve the MongoDB wire protocol. Without a configuration file it serves on 127.0.0.1:27017 from ./data.\n" +
			"SIGHUP reads the file again; SIGINT and SIGTERM stop, after running commands have finished.",
		Args: noArguments,
		RunE: untilSignal(func(ctx context.Context, _, stderr io.Writer) error { return serve(ctx, o, stderr) }),
	}
	c.Flags().StringVarP(&o.file, "config", "c", "", "configuration file (YAML)")
	c.Flags().StringVar(&o.listen, "listen", "", "address in place of the configuration's: host:port, or the path of a Unix socket")
	c.Flags().DurationVar(&o.grace, "grace", 10*time.Second, "how long running commands may take when stopping")
	return c
}

// serve runs a gateway until ctx ends, then stops it.
func serve(ctx context.Context, o serveOptions, stderr io.Writer) error {
	log := slog.New(slog.NewTextHandler(stderr, nil))
	g, err := oxbow.Open(ctx, oxbow.Options{File: o.file, Listen: o.listen, Log: log.Handler()})
	if err != nil {
		return err
	}
	g.LimitProcess()
	g.ShareProcessors()
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for {
		select {
		case err := <-g.Failed():
			return errors.Join(err, g.Close(ctx))
		case <-hangup:
			if err := g.Reload(ctx); err != nil {
				log.Error("configuration not reloaded; the one before stays", "error", err)
			}
		case <-ctx.Done():
			return stopServing(g, o.grace, log)
		}
	}
}

// stopServing closes the gateway; that commands had to be interrupted at the end of the grace is in the log and no failure of the stop.
func stopServing(g *oxbow.Gateway, grace time.Duration, log *slog.Logger) error {
	log.Info("stopping", "grace", grace)
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if err := g.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stop: %w", err)
	}
	return nil
}
