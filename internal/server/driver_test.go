package server

import (
	"context"
	"errors"
	"testing"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"oxbow/internal/cursor"
)

func connect(t *testing.T, s *served, o *options.ClientOptions) *mongo.Client {
	t.Helper()
	c, err := mongo.Connect(o.ApplyURI("mongodb://" + s.address).SetServerSelectionTimeout(20 * time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if err := c.Disconnect(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return c
}

func TestDriverWithEachCompressor(t *testing.T) {
	for _, name := range []string{"none", "snappy", "zlib", "zstd"} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, Options{})
			o := options.Client()
			if name != "none" {
				o.SetCompressors([]string{name})
			}
			c := connect(t, s, o)
			if err := c.Ping(t.Context(), readpref.Primary()); err != nil {
				t.Fatal(err)
			}
			var commands struct{ Commands driver.M }
			if err := c.Database("admin").RunCommand(t.Context(), driver.D{{Key: "listCommands", Value: 1}}).Decode(&commands); err != nil {
				t.Fatal(err)
			}
			if commands.Commands["ping"] == nil {
				t.Fatalf("listCommands gives %v", commands)
			}
			var hello driver.M
			if err := c.Database("admin").RunCommand(t.Context(), driver.D{{Key: "hello", Value: 1}}).Decode(&hello); err != nil {
				t.Fatal(err)
			}
			if agreed, _ := hello["compression"].(driver.A); name != "none" && (len(agreed) != 1 || agreed[0] != name) {
				t.Fatalf("agreed on %v", hello["compression"])
			}
			// What a connection wrote is counted when it's written: after the client can have read it.
			if err := c.Disconnect(t.Context()); err != nil {
				t.Fatal(err)
			}
			eventually(t, "all connections gone", func() bool { return s.counters.ConnectionsCurrent.Load() == 0 })
			smaller := s.counters.PhysicalOut.Load() < s.counters.BytesOut.Load()
			if smaller != (name != "none") {
				t.Fatalf("%d bytes of replies took %d on the socket", s.counters.BytesOut.Load(), s.counters.PhysicalOut.Load())
			}
		})
	}
}

func TestDriverSessions(t *testing.T) {
	s := serve(t, Options{})
	c := connect(t, s, options.Client())
	session, err := c.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	err = mongo.WithSession(t.Context(), session, func(ctx context.Context) error {
		return c.Database("x").RunCommand(ctx, driver.D{{Key: "getMore", Value: int64(5)}, {Key: "collection", Value: "c"}}).Err()
	})
	var failed mongo.CommandError
	if !errors.As(err, &failed) || failed.Code != 59 {
		t.Fatalf("getMore is not in this table, but gave %v", err)
	}
	var sessions []driver.M
	cur, err := c.Database("admin").Aggregate(t.Context(), driver.A{driver.D{{Key: "$listLocalSessions", Value: driver.D{}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := cur.All(t.Context(), &sessions); err != nil {
		t.Fatal(err)
	}
	if len(sessions) == 0 {
		t.Fatal("the session of the aggregation itself is not listed")
	}
	session.EndSession(t.Context())
}

func TestDriverSeesAVersion7Router(t *testing.T) {
	s := serve(t, Options{})
	c := connect(t, s, options.Client().SetAppName("router test"))
	_, err := c.StartSession()
	if err != nil {
		t.Fatalf("sessions need logicalSessionTimeoutMinutes: %v", err)
	}
	res, err := c.Database("config").Collection("shards").Find(t.Context(), driver.D{})
	if err != nil {
		t.Fatal(err)
	}
	var shards []driver.M
	if err := res.All(t.Context(), &shards); err != nil || len(shards) != 1 {
		t.Fatal(err, shards)
	}
	var ops struct{ Inprog []driver.M }
	if err := c.Database("admin").RunCommand(t.Context(), driver.D{{Key: "currentOp", Value: 1}, {Key: "$all", Value: true}}).Decode(&ops); err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, op := range ops.Inprog {
		if op["appName"] == "router test" {
			named++
		}
	}
	if named == 0 {
		t.Fatalf("currentOp does not name the application: %v", ops.Inprog)
	}
	if cursor.SessionTimeout != 30*time.Minute {
		t.Fatal("hello promises 30 minutes")
	}
}

func TestDriverStableAPI(t *testing.T) {
	s := serve(t, Options{})
	api := options.ServerAPI(options.ServerAPIVersion1).SetStrict(true).SetDeprecationErrors(true)
	c := connect(t, s, options.Client().SetServerAPIOptions(api))
	if err := c.Ping(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	var failed mongo.CommandError
	err := c.Database("admin").RunCommand(t.Context(), driver.D{{Key: "serverStatus", Value: 1}}).Err()
	if !errors.As(err, &failed) || failed.Name != "APIStrictError" {
		t.Fatalf("serverStatus under apiStrict: %v", err)
	}
}
