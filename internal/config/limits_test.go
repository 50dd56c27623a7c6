package config

import (
	"strings"
	"testing"
	"time"
)

func TestLimits(t *testing.T) {
	for text, want := range map[string]Limits{
		"":             DefaultLimits,
		"limits: {}\n": DefaultLimits,
		"limits: {connections: {total: 5, address: 3, user: 2}, messages: {connection: 10, user: 20}, login: 30s}\n": {
			Connections: 5, ConnectionsPerAddress: 3, ConnectionsPerUser: 2, MessagesPerConnection: 10, MessagesPerUser: 20, Login: 30 * time.Second,
		},
		"limits: {login: 0}\n": {Connections: DefaultLimits.Connections},
	} {
		if got := parsed(t, text).Limits; got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"limits: 5":                             "limits: must be a mapping",
		"limits: {connections: 5}":              "limits.connections: must be a mapping",
		"limits: {connections: {total: 0}}":     "limits.connections.total: must be a whole number from 1",
		"limits: {connections: {perUser: 1}}":   "limits.connections.perUser: is not a key here",
		"limits: {messages: {connection: -1}}":  "limits.messages.connection: must be a whole number from 0",
		"limits: {messages: {user: 1.5}}":       "limits.messages.user: must be a whole number",
		"limits: {login: soon}":                 "limits.login: \"soon\" is not a duration",
		"limits: {logins: 1m}":                  "limits.logins: is not a key here",
		"limits: {connections: {total: 1e100}}": "limits.connections.total: must be a whole number",
	} {
		if _, err := Parse("oxbow.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestFanout(t *testing.T) {
	cfg := parsed(t, "fanout: 8\ncollections: {a.b: {hash: {field: c}, fanout: 2}, a.c: {hash: {field: c}}}\n")
	if cfg.Fanout != 8 || cfg.Collection("a.b").Fanout != 2 || cfg.Collection("a.c").Fanout != DefaultWidth {
		t.Errorf("%d, %d, %d", cfg.Fanout, cfg.Collection("a.b").Fanout, cfg.Collection("a.c").Fanout)
	}
	if n := parsed(t, "").Fanout; n != DefaultFanout {
		t.Errorf("the default is %d", n)
	}
	for text, want := range map[string]string{
		"fanout: 0": "fanout: must be a whole number from 1",
		"collections: {a.b: {hash: {field: c}, fanout: 0}}":    "collections.a.b.fanout: must be a whole number from 1",
		"collections: {a.b: {hash: {field: c}, fanout: many}}": "collections.a.b.fanout: must be a whole number",
	} {
		if _, err := Parse("oxbow.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
