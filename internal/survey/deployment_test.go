package survey

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/backend/embedded"
	"oxbow/internal/bson"
	"oxbow/internal/deployment"
)

// scripted is a replica set on one engine with real documents. What the engine can't have, such as an oplog, a file with holes, or TTL, its script says.
type scripted struct {
	t       *testing.T
	engine  *embedded.Backend
	members []deployment.Member
	script  map[string]func(cmd driver.M, reply driver.M) driver.M // by "command database.collection" or "command": the reply, from the engine's own
	mu      sync.Mutex
	asked   []string // hosts and commands
}

// server is one of its members.
type server struct {
	*scripted
	host string
}

func newScripted(t *testing.T, members ...deployment.Member) *scripted {
	t.Helper()
	engine, err := embedded.Open(embedded.Options{Store: embedded.Store{Dir: "member", FS: vfs.NewMem(), CacheBytes: 4 << 20, MemTableBytes: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Errorf("close the engine: %v", err)
		}
	})
	s := &scripted{t: t, engine: engine, members: members, script: map[string]func(driver.M, driver.M) driver.M{}}
	s.script["top"] = func(driver.M, driver.M) driver.M {
		return driver.M{"ok": 0, "code": 59, "errmsg": "no such command: 'top'"}
	}
	s.script["buildInfo"] = func(driver.M, driver.M) driver.M { return driver.M{"version": "6.0.9", "ok": 1} }
	s.script["serverStatus"] = func(driver.M, driver.M) driver.M {
		return driver.M{"uptime": 86400, "metrics": driver.M{"ttl": driver.M{"passes": 1440, "deletedDocuments": 58_000},
			"queryExecutor": driver.M{"collectionScans": driver.M{"total": 900, "nonTailable": 20}}}, "ok": 1}
	}
	s.script["aggregate admin.$currentOp"] = func(driver.M, driver.M) driver.M { return cursor("admin.$cmd.aggregate") }
	s.oplog(20<<30, 100*time.Hour)
	return s
}

func (s *scripted) Members(context.Context) ([]deployment.Member, error) { return s.members, nil }

func (s *scripted) Whole() backend.Backend { return server{s, "whole"} }

func (s *scripted) On(_ context.Context, host string) (backend.Backend, error) {
	return server{s, host}, nil
}

func (s server) Abilities() backend.Abilities { return backend.Abilities{} }

func (s server) Close() error { return nil }

// Run answers as the script says, from what the engine says.
func (s server) Run(ctx context.Context, req *backend.Request) (bson.Document, error) {
	var cmd driver.M
	if err := driver.Unmarshal(req.Body, &cmd); err != nil {
		s.t.Error(err)
	}
	name, argument, _ := bson.First(req.Body)
	on, ok := argument.StringValueOK()
	if !ok {
		on = stageOf(cmd)
	}
	s.mu.Lock()
	s.asked = append(s.asked, s.host+" "+name)
	s.mu.Unlock()
	if !reads[name] {
		s.t.Errorf("%s was sent", name)
	}
	rewrite := s.script[fmt.Sprintf("%s %s.%s", name, cmd["$db"], on)]
	if rewrite == nil {
		rewrite = s.script[name]
	}
	body := req.Body
	if name == "aggregate" && stageOf(cmd) == "$sample" && rewrite == nil {
		// The engine draws nothing: it gives the first ones.
		body = s.document(driver.D{{Key: "find", Value: on}, {Key: "limit", Value: sampleRandom}, {Key: "singleBatch", Value: true}, {Key: "batchSize", Value: sampleRandom}, {Key: "$db", Value: cmd["$db"]}})
	}
	reply, err := s.engine.Run(ctx, &backend.Request{Body: body})
	if err != nil || rewrite == nil {
		return reply, err
	}
	var own driver.M
	if err := driver.Unmarshal(reply, &own); err != nil {
		s.t.Error(err)
	}
	return s.document(rewrite(cmd, own)), nil
}

// reads are the commands that a survey may send.
var reads = map[string]bool{
	"buildInfo": true, "serverStatus": true, "dbStats": true, "top": true, "listDatabases": true, "listCollections": true, "listIndexes": true, "collStats": true,
	"count": true, "find": true, "aggregate": true, "explain": true, "getMore": true, "killCursors": true,
}

// stageOf is the first stage of a pipeline.
func stageOf(cmd driver.M) string {
	if list, ok := cmd["pipeline"].(driver.A); ok && len(list) > 0 {
		if stage, ok := list[0].(driver.D); ok && len(stage) > 0 {
			return stage[0].Key
		}
	}
	return ""
}

func (s *scripted) document(v any) bson.Document {
	doc, err := driver.Marshal(v)
	if err != nil {
		s.t.Error(err)
	}
	return doc
}

// cursor is the reply of a command that gives these documents.
func cursor(ns string, docs ...any) driver.M {
	return driver.M{"cursor": driver.M{"firstBatch": append(driver.A{}, docs...), "id": int64(0), "ns": ns}, "ok": 1}
}

// insert puts documents into a collection.
func (s *scripted) insert(ns string, docs ...driver.D) {
	s.t.Helper()
	database, collection, _ := strings.Cut(ns, ".")
	reply, err := s.engine.Run(s.t.Context(), &backend.Request{Body: s.document(driver.D{{Key: "insert", Value: collection}, {Key: "documents", Value: docs}, {Key: "$db", Value: database}})})
	if err == nil {
		err = backend.Check(reply)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// index makes an index.
func (s *scripted) index(ns, field string) {
	s.t.Helper()
	database, collection, _ := strings.Cut(ns, ".")
	spec := driver.D{{Key: "key", Value: driver.D{{Key: field, Value: 1}}}, {Key: "name", Value: field + "_1"}}
	reply, err := s.engine.Run(s.t.Context(), &backend.Request{Body: s.document(driver.D{{Key: "createIndexes", Value: collection}, {Key: "indexes", Value: driver.A{spec}}, {Key: "$db", Value: database}})})
	if err == nil {
		err = backend.Check(reply)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// figures makes collStats, and a count, tell these figures.
func (s *scripted) figures(ns string, set driver.M) {
	database, collection, _ := strings.Cut(ns, ".")
	s.script["collStats "+ns] = func(_, reply driver.M) driver.M {
		for k, v := range set {
			reply[k] = v
		}
		return reply
	}
	if n, ok := set["count"]; ok {
		s.script["count "+database+"."+collection] = func(_, reply driver.M) driver.M {
			reply["n"] = n
			return reply
		}
	}
}

// oplog makes the set's log as large as this, full, and cover a time, in which an hour had ten times the writes of the others.
func (s *scripted) oplog(size int64, covers time.Duration) {
	last := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s.figures("local.oplog.rs", driver.M{"maxSize": size, "size": size, "ok": 1})
	entry := func(at time.Time) driver.D {
		return driver.D{{Key: "ts", Value: driver.Timestamp{T: uint32(at.Unix())}}, {Key: "op", Value: "i"}, {Key: "ns", Value: "im.msg"}}
	}
	s.script["find local.oplog.rs"] = func(cmd, _ driver.M) driver.M {
		at := last
		if sort, _ := cmd["sort"].(driver.D); len(sort) > 0 && sort[0].Value == int32(1) {
			at = last.Add(-covers)
		}
		return cursor("local.oplog.rs", entry(at))
	}
	s.script["aggregate local.oplog.rs"] = func(driver.M, driver.M) driver.M {
		var docs []any
		for i := range oplogSample {
			at := last.Add(-covers * time.Duration(i) / oplogSample)
			docs = append(docs, entry(at))
		}
		return cursor("local.oplog.rs", docs...)
	}
}
