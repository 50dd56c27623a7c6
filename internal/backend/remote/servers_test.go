package remote

import (
	"context"
	"testing"

	"oxbow/internal/backend"
	"oxbow/internal/command"

	driver "go.mongodb.org/mongo-driver/v2/bson"
)

// TestServers: what the servers behind a backend can do is known once one has answered.
func TestServers(t *testing.T) {
	for _, test := range []struct {
		name string
		is   backend.Servers
	}{
		{"router", backend.Servers{WireVersion: 21}},
		{"old router", backend.Servers{WireVersion: 8}},
		{"server alone", backend.Servers{WireVersion: 17, Standalone: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			uri := serve(t, asTheyCame, func(d *command.Deps) { d.Servers = func() backend.Servers { return test.is } })
			b := connect(t, uri)
			if _, err := b.Run(context.Background(), &backend.Request{Body: encode(t, driver.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}})}); err != nil {
				t.Fatal(err)
			}
			if got := b.Servers(); got != test.is {
				t.Errorf("known is %+v, not %+v", got, test.is)
			}
		})
	}
	if got := connect(t, "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=50").Servers(); got != (backend.Servers{}) {
		t.Errorf("known of nobody is %+v", got)
	}
}
