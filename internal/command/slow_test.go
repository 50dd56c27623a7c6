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

// TestSlowShowsNoSecret: with every command in the log, however wrong it is, no password and no message of a login shows.
func TestSlowShowsNoSecret(t *testing.T) {
	var log bytes.Buffer
	now := time.Unix(0, 0)
	table := newTable(func(d *Deps) {
		d.Log, d.Slow = slog.New(slog.NewTextHandler(&log, nil)), time.Nanosecond
		d.Now = func() time.Time { now = now.Add(time.Millisecond); return now }
		d.Fallback = func(context.Context, *Request, *Reply) error { return nil }
	})
	table.Register("explain", Entry{Handler: func(context.Context, *Request, *Reply) error { return nil }})
	payload := driver.Binary{Data: []byte("tide")}
	sasl := driver.D{{Key: "saslStart", Value: 1}, {Key: "mechanism", Value: "SCRAM-SHA-256"}, {Key: "payload", Value: payload}}
	create := driver.D{{Key: "createUser", Value: "ada"}, {Key: "pwd", Value: "tide"}, {Key: "roles", Value: driver.A{}}}
	for _, command := range []driver.D{
		sasl, create,
		append(driver.D{{Key: "saslContinue", Value: 1}, {Key: "conversationId", Value: 1}}, sasl[2]),
		append(driver.D{{Key: "authenticate", Value: 1}, {Key: "user", Value: "ada"}}, driver.E{Key: "key", Value: "tide"}),
		append(create, create[1]),
		append(create, driver.E{Key: "more", Value: "tide"}),
		{{Key: "createUser", Value: driver.D{{Key: "pwd", Value: "tide"}}}},
		{{Key: "updateUser", Value: "ada"}, {Key: "pwd", Value: driver.A{"tide"}}},
		{{Key: "updateUser", Value: "ada"}, {Key: "pwd", Value: "tide"}, {Key: "mechanisms", Value: "x"}},
		{{Key: "createuser", Value: "ada"}, {Key: "pwd", Value: "tide"}},
		{{Key: "explain", Value: create}},
		{{Key: "explain", Value: driver.D{{Key: "createuser", Value: "ada"}, {Key: "pwd", Value: "tide"}}}},
		{{Key: "hello", Value: 1}, {Key: "speculativeAuthenticate", Value: sasl}},
	} {
		log.Reset()
		answer := run(t, table, command)
		if shown := log.String(); strings.Contains(shown, "tide") || strings.Contains(shown, "dGlkZ") || command[0].Key != "hello" && !strings.Contains(shown, "slow command") {
			t.Errorf("%v: the log says %q", command, shown)
		}
		if text, _ := answer["errmsg"].(string); strings.Contains(text, "tide") {
			t.Errorf("%v: the error says %q", command, text)
		}
	}
	log.Reset()
	if run(t, table, driver.D{{Key: "explain", Value: driver.D{{Key: "ping", Value: "shown"}}}}); !strings.Contains(log.String(), "shown") {
		t.Errorf("what is no secret does not show: %s", log.String())
	}
}
