package command

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"
)

type printed string

func (p printed) String() string { return string(p) }

// TestSlow: only what is slow by itself is logged, and nothing that is nobody's business.
func TestSlow(t *testing.T) {
	var log bytes.Buffer
	now := time.Unix(0, 0)
	table := newTable(func(d *Deps) {
		d.Log, d.Slow, d.Now = slog.New(slog.NewTextHandler(&log, nil)), 100*time.Millisecond, func() time.Time { return now }
	})
	takes := func(d time.Duration) Handler {
		return func(_ context.Context, req *Request, _ *Reply) error {
			now = now.Add(d)
			req.Plan = printed("to one partition" + strings.Repeat("!", 5000))
			return nil
		}
	}
	table.Register("fast", Entry{Handler: takes(99 * time.Millisecond)})
	table.Register("slow", Entry{Handler: takes(100 * time.Millisecond)})
	table.Register("secret", Entry{Handler: takes(time.Second), Secret: true})
	table.Register("waits", Entry{Handler: takes(time.Second), Awaits: true})
	for _, c := range []struct {
		command driver.D
		want    []string
		not     string
	}{
		{driver.D{{Key: "fast", Value: 1}}, nil, "fast"},
		{driver.D{{Key: "slow", Value: "c"}, {Key: "a", Value: "b"}}, []string{"namespace=admin.c", "took=100ms", "to one partition!", `\"a\"`}, strings.Repeat("!", 3000)},
		{driver.D{{Key: "secret", Value: 1}, {Key: "pwd", Value: "tide"}}, []string{"command=secret"}, "tide"},
		{driver.D{{Key: "waits", Value: 1}, {Key: "maxTimeMS", Value: 500}}, nil, "waits"},
		{driver.D{{Key: "waits", Value: 1}}, []string{"command=waits"}, "hello"},
	} {
		log.Reset()
		run(t, table, c.command)
		for _, want := range c.want {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%v lacks %s: %s", c.command, want, log.String())
			}
		}
		if strings.Contains(log.String(), c.not) {
			t.Errorf("%v shows %s: %s", c.command, c.not, log.String())
		}
	}
}
