package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"oxbow/internal/command"
	"oxbow/internal/cursor"
	"oxbow/internal/server"
)

// answersAs is the version of MongoDB that Oxbow behaves as.
const answersAs = "7.0.14"

// serveOptions are the flags of serve.
type serveOptions struct {
	listen string
	grace  time.Duration
}

func serveCommand() *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the MongoDB wire protocol",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return serve(ctx, o, c.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&o.listen, "listen", "127.0.0.1:27017", "address (loopback) or path of a Unix socket")
	c.Flags().DurationVar(&o.grace, "grace", 10*time.Second, "how long running commands may take when stopping")
	return c
}

// serve runs a gateway until ctx ends, then stops it.
func serve(ctx context.Context, o serveOptions, stderr io.Writer) error {
	recent := command.NewRecentLog(slog.NewTextHandler(stderr, nil))
	log := slog.New(recent)
	listener, err := server.Listen(o.listen)
	if err != nil {
		return err
	}
	counters := &command.Counters{}
	table := command.New(command.Deps{
		Log:       log,
		RecentLog: recent,
		Now:       time.Now,
		Sessions:  cursor.NewSessions(cursor.SessionTimeout),
		Cursors:   cursor.NewRegistry(cursor.IdleTimeout),
		Counters:  counters,
		Server:    about(listener.Addr()),
	})
	s := server.New(listener, table, counters, log, server.Options{})
	log.Info("serving", "address", listener.Addr().String())
	failed := make(chan error, 1)
	go func() { failed <- s.Serve() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	log.Info("stopping", "grace", o.grace)
	grace, cancel := context.WithTimeout(context.Background(), o.grace)
	defer cancel()
	if err := s.Shutdown(grace); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stop: %w", err)
	}
	return nil
}

// about is what the gateway tells of itself.
func about(addr net.Addr) command.ServerInfo {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	if tcp, ok := addr.(*net.TCPAddr); ok {
		host = net.JoinHostPort(host, strconv.Itoa(tcp.Port))
	}
	build := "devel"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		build = info.Main.Version
	}
	return command.ServerInfo{Version: answersAs, Build: build, Host: host, Address: addr.String(), Started: time.Now(), Argv: os.Args}
}
