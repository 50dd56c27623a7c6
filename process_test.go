package oxbow

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// TestMain runs a gateway in place of the tests where the environment asks for one: test/gateways has this binary built, and runs it as several processes
// whose clock is faster, so that partitions of a minute roll over every second.
func TestMain(m *testing.M) {
	file := os.Getenv("OXBOW_TEST_CONFIG")
	if file == "" {
		os.Exit(m.Run())
	}
	if err := serveForTest(file, os.Getenv("OXBOW_TEST_LISTEN"), os.Getenv("OXBOW_TEST_CLOCK")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveForTest serves until SIGTERM. clock is "at begin factor": the clock showed begin (milliseconds since 1970) when the machine's showed at, and is so many times
// as fast.
func serveForTest(file, listen, clock string) error {
	var at, begin, factor int64
	if _, err := fmt.Sscan(clock, &at, &begin, &factor); err != nil {
		return fmt.Errorf("read the clock %q: %w", clock, err)
	}
	// From the wall clock, which all processes share; from then on monotonic.
	started, passed := time.Now(), time.Now().UnixMilli()-at
	now := func() time.Time {
		return time.UnixMilli(begin + passed*factor).Add(time.Since(started) * time.Duration(factor))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	g, err := Open(ctx, Options{File: file, Listen: listen, Log: slog.NewTextHandler(os.Stderr, nil), UpkeepEvery: 500 * time.Millisecond, now: now})
	if err != nil {
		return err
	}
	<-ctx.Done()
	end, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return g.Close(end)
}
