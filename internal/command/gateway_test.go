package command

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bson"
	"oxbow/internal/cursor"
	"oxbow/internal/memory"
	"oxbow/internal/mongoerr"
)

// sub returns a document inside a reply.
func sub(t testing.TB, m driver.M, key string) driver.M {
	t.Helper()
	b, err := driver.Marshal(m[key])
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	var out driver.M
	if err := driver.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestHello(t *testing.T) {
	table := newTable()
	for name, primary := range map[string]string{"hello": "isWritablePrimary", "isMaster": "ismaster", "ismaster": "ismaster"} {
		conn := &Conn{ID: 42}
		got := runRequest(t, table, t.Context(), &Request{Conn: conn, Body: doc(t, onAdmin(driver.D{
			{Key: name, Value: 1}, {Key: "helloOk", Value: true}, {Key: "compression", Value: driver.A{"lzma", "zstd", "snappy"}},
			{Key: "client", Value: driver.D{{Key: "application", Value: driver.D{{Key: "name", Value: "test"}}}}},
			{Key: "speculativeAuthenticate", Value: driver.D{{Key: "saslStart", Value: 1}}}, {Key: "somethingNew", Value: 1},
		}))})
		want := driver.M{primary: true, "msg": "isdbgrid", "helloOk": true, "maxBsonObjectSize": int32(16777216), "maxMessageSizeBytes": int32(48000000),
			"maxWriteBatchSize": int32(100000), "logicalSessionTimeoutMinutes": int32(30), "connectionId": int64(42), "minWireVersion": int32(0),
			"maxWireVersion": int32(21), "readOnly": false, "ok": 1.0}
		for k, v := range want {
			if got[k] != v {
				t.Errorf("%s: %s is %v, want %v", name, k, got[k], v)
			}
		}
		if c, _ := got["compression"].(driver.A); len(c) != 2 || c[0] != "zstd" || c[1] != "snappy" {
			t.Errorf("%s: compression %v", name, got["compression"])
		}
		if _, answered := got["speculativeAuthenticate"]; answered {
			t.Errorf("%s: speculative authentication was answered", name)
		}
		if conn.metadata.Load() == nil {
			t.Errorf("%s: the client's document is not kept", name)
		}
	}
	if got := run(t, table, driver.D{{Key: "hello", Value: 1}}); got["compression"] != nil || got["helloOk"] != nil {
		t.Errorf("fields that were not asked for: %v", got)
	}
}

func TestAwaitableHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		version := sub(t, run(t, table, driver.D{{Key: "hello", Value: 1}}), "topologyVersion")
		await := func(version any, extra ...driver.E) (driver.M, time.Duration) {
			start := time.Now()
			d := append(driver.D{{Key: "hello", Value: 1}, {Key: "topologyVersion", Value: version}}, extra...)
			return run(t, table, d), time.Since(start)
		}
		ten := driver.E{Key: "maxAwaitTimeMS", Value: int64(10_000)}
		if got, took := await(version, ten); code(got) != 0 || took != 10*time.Second {
			t.Errorf("the version it knows: %v after %v", got, took)
		}
		if got, took := await(driver.M{"processId": driver.NewObjectID(), "counter": int64(0)}, ten); code(got) != 0 || took != 0 {
			t.Errorf("another process: %v after %v", got, took)
		}
		for _, c := range []struct {
			version any
			extra   []driver.E
			code    mongoerr.Code
		}{
			{version, nil, 51760},
			{driver.M{"processId": version["processId"], "counter": int64(9)}, []driver.E{ten}, 51761},
			{driver.M{"processId": version["processId"], "counter": int64(-1)}, []driver.E{ten}, 51758},
			{version, []driver.E{{Key: "maxAwaitTimeMS", Value: -1}}, 51759},
			{driver.M{"counter": int64(0)}, []driver.E{ten}, mongoerr.IDLMissingField},
			{"x", []driver.E{ten}, mongoerr.TypeMismatch},
		} {
			if got, _ := await(c.version, c.extra...); code(got) != c.code {
				t.Errorf("%v %v: code %d, want %d", c.version, c.extra, code(got), c.code)
			}
		}
	})
}

func TestExhaustHello(t *testing.T) {
	table := newTable()
	ask := func(d driver.D) Reply {
		req := Request{Body: doc(t, onAdmin(d)), Exhaust: true, Conn: &Conn{}}
		reply := Reply{}
		table.Run(t.Context(), &req, &reply)
		return reply
	}
	stale := driver.D{{Key: "processId", Value: driver.NewObjectID()}, {Key: "counter", Value: int64(0)}}
	reply := ask(driver.D{{Key: "hello", Value: 1}, {Key: "topologyVersion", Value: stale}, {Key: "maxAwaitTimeMS", Value: 1}})
	if !reply.Again || reply.Next == nil {
		t.Fatal("a stream goes on with the present topology version")
	}
	v, _ := bson.Get(reply.Next, "topologyVersion")
	if id, _ := bson.Get(v.Data, "processId"); id.ObjectID() != table.topology.processID {
		t.Fatalf("next body %s", reply.Next)
	}
	var present driver.D
	if err := driver.Unmarshal(v.Data, &present); err != nil {
		t.Fatal(err)
	}
	if reply = ask(driver.D{{Key: "hello", Value: 1}, {Key: "topologyVersion", Value: present}, {Key: "maxAwaitTimeMS", Value: 1}}); !reply.Again || reply.Next != nil {
		t.Fatal("a stream goes on with the same body")
	}
	if reply = ask(driver.D{{Key: "hello", Value: 1}}); reply.Again {
		t.Fatal("no stream without a time to wait")
	}
}

func TestParameters(t *testing.T) {
	table := newTable()
	got := run(t, table, driver.D{{Key: "getParameter", Value: 1}, {Key: "featureCompatibilityVersion", Value: 1}, {Key: "nonsense", Value: 1}})
	if code(got) != 0 || sub(t, got, "featureCompatibilityVersion")["version"] != "7.0" || len(got) != 2 {
		t.Errorf("one parameter: %v", got)
	}
	if got := run(t, table, driver.D{{Key: "getParameter", Value: "*"}}); code(got) != 0 || len(got) != len(table.parameters())+1 {
		t.Errorf("all parameters: %v", got)
	}
	if got := run(t, table, driver.D{{Key: "getParameter", Value: 1}, {Key: "nonsense", Value: 1}}); code(got) != mongoerr.InvalidOptions || got["errmsg"] != "no option found to get" {
		t.Errorf("no parameter: %v", got)
	}
	got = run(t, table, driver.D{{Key: "getParameter", Value: driver.D{{Key: "showDetails", Value: true}}}, {Key: "maxSessions", Value: 1}})
	if d := sub(t, got, "maxSessions"); d["value"] != int32(cursor.MaxSessions) || d["settableAtRuntime"] != false {
		t.Errorf("with details: %v", got)
	}
}

func TestServerStatus(t *testing.T) {
	started := time.Now().Add(-90 * time.Second)
	table := newTable(func(d *Deps) {
		d.Server.Started = started
		d.Sections = []StatusSection{{Name: "storageEngine", Append: func(dst []byte) []byte { return appendFigures(dst, figure{"tables", 3}) }}}
	})
	run(t, table, driver.D{{Key: "ping", Value: 1}})
	run(t, table, driver.D{{Key: "nonsense", Value: 1}})
	run(t, table, driver.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: driver.A{driver.D{}, driver.D{}}}})
	got := run(t, table, driver.D{{Key: "serverStatus", Value: 1}, {Key: "mem", Value: 0}, {Key: "network", Value: false}})
	if up, ok := got["uptime"].(int64); !ok || up < 90 {
		t.Errorf("uptime %v (%T)", got["uptime"], got["uptime"])
	}
	if got["mem"] != nil || got["network"] != nil || got["process"] != "mongos" {
		t.Errorf("sections that were left out are there: %v", got)
	}
	ops := sub(t, got, "opcounters")
	if ops["insert"] != int64(2) || ops["command"] != int64(3) {
		t.Errorf("opcounters %v", ops)
	}
	if a := sub(t, got, "asserts"); a["user"] != int64(2) {
		t.Errorf("asserts %v", a)
	}
	if s := sub(t, got, "storageEngine"); s["tables"] != int64(3) {
		t.Errorf("storageEngine %v", s)
	}
	if m := sub(t, run(t, table, driver.D{{Key: "serverStatus", Value: 1}}), "mem"); m["resident"].(int32) < 1 {
		t.Errorf("mem %v", m)
	}
}

func TestTop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		table.Register("find", Entry{Handler: func(context.Context, *Request, *Reply) error {
			time.Sleep(2 * time.Millisecond)
			return nil
		}})
		for range 3 {
			run(t, table, driver.D{{Key: "find", Value: "c"}, {Key: "$db", Value: "shop"}})
		}
		run(t, table, driver.D{{Key: "ping", Value: 1}})
		run(t, table, driver.D{{Key: "usersInfo", Value: "ada"}, {Key: "$db", Value: "shop"}}) // a user is no collection
		totals := sub(t, run(t, table, driver.D{{Key: "top", Value: 1}}), "totals")
		q := sub(t, sub(t, totals, "shop.c"), "queries")
		if len(totals) != 2 || q["count"] != int64(3) || q["time"] != int64(6000) {
			t.Fatalf("top gives %v", totals)
		}
		for _, name := range []string{"a\x00b", "\xff"} {
			run(t, table, driver.D{{Key: "find", Value: name}, {Key: "$db", Value: "shop"}})
		}
		if totals = sub(t, run(t, table, driver.D{{Key: "top", Value: 1}}), "totals"); len(totals) != 2 {
			t.Fatalf("top gives %v for names that can't be", totals)
		}
		for i := range maxUsages + 10 {
			table.usages.add("made.up"+strconv.Itoa(i), "find", 1)
		}
		if n := len(table.usages.by); n != maxUsages {
			t.Fatalf("%d collections are counted", n)
		}
	})
}

// content is an empty cursor content that counts closings.
type content struct{ closed int }

func (c *content) NextBatch(_ context.Context, dst []byte, _, _ int, _ *memory.Account) ([]byte, int, bool, error) {
	return dst, 0, false, nil
}
func (c *content) Close() error { c.closed++; return nil }

func TestSessionCommands(t *testing.T) {
	table := newTable()
	got := run(t, table, driver.D{{Key: "startSession", Value: 1}})
	id := sub(t, got, "id")
	if code(got) != 0 || got["timeoutMinutes"] != int32(30) || id["id"].(driver.Binary).Subtype != 4 {
		t.Fatalf("startSession gives %v", got)
	}
	sid := cursor.SessionID{UUID: [16]byte(id["id"].(driver.Binary).Data)}
	open := func() *content {
		c := &content{}
		if err := table.deps.Sessions.Touch(sid, time.Now()); err != nil {
			t.Fatal(err)
		}
		if _, err := table.deps.Cursors.Add(c, cursor.Options{Namespace: "a.b", Session: &sid}, time.Now()); err != nil {
			t.Fatal(err)
		}
		return c
	}
	ended := driver.A{driver.D{{Key: "id", Value: id["id"]}}}
	other := driver.A{lsid()}
	for _, c := range []struct {
		name    string
		command driver.D
		code    mongoerr.Code
		ends    bool
	}{
		{"refresh", driver.D{{Key: "refreshSessions", Value: ended}}, 0, false},
		{"end", driver.D{{Key: "endSessions", Value: ended}}, 0, true},
		{"end another", driver.D{{Key: "endSessions", Value: other}}, 0, false},
		{"end no array", driver.D{{Key: "endSessions", Value: 1}}, mongoerr.TypeMismatch, false},
		{"kill", driver.D{{Key: "killSessions", Value: ended}}, 0, true},
		{"kill another", driver.D{{Key: "killSessions", Value: other}}, 0, false},
		{"kill all of the user", driver.D{{Key: "killSessions", Value: driver.A{}}}, 0, true},
		{"kill all", driver.D{{Key: "killAllSessions", Value: driver.A{}}}, 0, true},
		{"kill all of a user who isn't there", driver.D{{Key: "killAllSessions", Value: driver.A{driver.D{{Key: "user", Value: "u"}, {Key: "db", Value: "d"}}}}}, 0, false},
		{"kill all of half a user", driver.D{{Key: "killAllSessions", Value: driver.A{driver.D{{Key: "user", Value: "u"}}}}}, mongoerr.IDLMissingField, false},
		{"kill by pattern", driver.D{{Key: "killAllSessionsByPattern", Value: driver.A{driver.D{{Key: "lsid", Value: driver.D{{Key: "id", Value: id["id"]}}}}}}}, 0, true},
		{"kill by no pattern", driver.D{{Key: "killAllSessionsByPattern", Value: driver.A{driver.D{{Key: "x", Value: 1}}}}}, mongoerr.IDLUnknownField, false},
	} {
		held := open()
		if got := run(t, table, c.command); code(got) != c.code {
			t.Errorf("%s: %v", c.name, got)
		}
		known := slices.ContainsFunc(table.deps.Sessions.List(nil), func(s cursor.Session) bool { return s.ID == sid })
		if (held.closed == 1) != c.ends || known == c.ends {
			t.Errorf("%s: cursor closed %d times, session known: %v", c.name, held.closed, known)
		}
		table.deps.Cursors.KillSessions(sid)
	}
}

func TestSweepEndsSessionsWithTheirCursors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		sid, _ := table.deps.Sessions.Start("", time.Now())
		c := &content{}
		if _, err := table.deps.Cursors.Add(c, cursor.Options{Session: &sid, NoTimeout: true}, time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(29 * time.Minute)
		table.Sweep()
		if c.closed != 0 {
			t.Fatal("ended before its session")
		}
		time.Sleep(time.Minute)
		table.Sweep()
		if c.closed != 1 {
			t.Fatal("a cursor without a timeout outlives its session")
		}
	})
}

func TestSweepKeepsTheSessionOfARunningCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		done := make(chan struct{})
		table.Register("wait", Entry{Handler: func(context.Context, *Request, *Reply) error {
			<-done
			return nil
		}})
		go run(t, table, driver.D{{Key: "wait", Value: 1}, {Key: "lsid", Value: lsid()}})
		synctest.Wait()
		for range 3 {
			time.Sleep(20 * time.Minute)
			table.Sweep()
		}
		if table.deps.Sessions.Len() != 1 {
			t.Fatal("the session of a command that runs for an hour has ended")
		}
		close(done)
		time.Sleep(30 * time.Minute)
		table.Sweep()
		if table.deps.Sessions.Len() != 0 {
			t.Fatal("the session outlives its command by half an hour")
		}
	})
}

// Credentials that are sent to a gateway without users go nowhere.
func TestLoginFails(t *testing.T) {
	table := newTable(func(d *Deps) {
		d.Fallback = func(context.Context, *Request, *Reply) error {
			t.Error("credentials were passed on")
			return nil
		}
	})
	binary := driver.Binary{Data: []byte("n,,n=ada,r=abcdefgh")}
	for _, c := range []struct {
		command driver.D
		want    mongoerr.Code
	}{
		{driver.D{{Key: "saslStart", Value: 1}, {Key: "mechanism", Value: "PLAIN"}, {Key: "payload", Value: binary}}, mongoerr.MechanismUnavailable},
		{driver.D{{Key: "saslStart", Value: 1}, {Key: "payload", Value: binary}}, mongoerr.IDLMissingField},
		{driver.D{{Key: "saslStart", Value: 1}, {Key: "mechanism", Value: "SCRAM-SHA-256"}}, mongoerr.IDLMissingField},
		{driver.D{{Key: "saslStart", Value: 1}, {Key: "mechanism", Value: "SCRAM-SHA-256"}, {Key: "payload", Value: driver.Binary{}}}, mongoerr.AuthenticationFailed},
		{driver.D{{Key: "saslContinue", Value: 1}, {Key: "conversationId", Value: 1}, {Key: "payload", Value: binary}}, mongoerr.ProtocolError},
		{driver.D{{Key: "authenticate", Value: 1}, {Key: "mechanism", Value: "MONGODB-X509"}}, mongoerr.ProtocolError},
	} {
		if got := run(t, table, c.command); code(got) != c.want {
			t.Errorf("%v: %v", c.command, got)
		}
	}
}

func TestLog(t *testing.T) {
	recent := NewRecentLog(slog.DiscardHandler)
	log := slog.New(recentAlways{recent}).With("part", "test")
	table := newTable(func(d *Deps) { d.RecentLog = recent })
	for range keptLines + 5 {
		log.Warn("hello", "n", 1)
	}
	got := run(t, table, driver.D{{Key: "getLog", Value: "global"}})
	lines := got["log"].(driver.A)
	if len(lines) != keptLines || got["totalLinesWritten"] != int64(keptLines+5) {
		t.Fatalf("%d lines of %v", len(lines), got["totalLinesWritten"])
	}
	var line driver.M
	if err := driver.UnmarshalExtJSON([]byte(lines[0].(string)), false, &line); err != nil {
		t.Fatal(err)
	}
	if line["msg"] != "hello" || line["s"] != "W" || sub(t, line, "attr")["part"] != "test" {
		t.Fatalf("line %v", line)
	}
	if got := run(t, table, driver.D{{Key: "getLog", Value: "*"}}); len(got["names"].(driver.A)) != 2 {
		t.Fatal(got)
	}
	if got := run(t, table, driver.D{{Key: "getLog", Value: "startupWarnings"}}); len(got["log"].(driver.A)) != 1 {
		t.Fatal(got)
	}
	if got := run(t, table, driver.D{{Key: "getLog", Value: "x"}}); code(got) != mongoerr.OperationFailed {
		t.Fatal(got)
	}
}

// recentAlways takes records of every level: the discarding handler behind has none enabled.
type recentAlways struct{ *RecentLog }

func (r recentAlways) Enabled(context.Context, slog.Level) bool { return true }
func (r recentAlways) WithAttrs(a []slog.Attr) slog.Handler {
	return recentAlways{r.RecentLog.WithAttrs(a).(*RecentLog)}
}

func TestSmallAnswers(t *testing.T) {
	table := newTable(func(d *Deps) { d.Server.Argv = []string{"oxbow", "serve"} })
	if got := run(t, table, driver.D{{Key: "buildinfo", Value: 1}}); got["version"] != "7.0.14" || !slices.Equal(got["versionArray"].(driver.A), driver.A{int32(7), int32(0), int32(14), int32(0)}) {
		t.Errorf("buildInfo: %v", got)
	}
	if got := run(t, table, driver.D{{Key: "whatsmyuri", Value: 1}}); got["you"] != "127.0.0.1:5000" {
		t.Errorf("whatsmyuri: %v", got)
	}
	if got := run(t, table, driver.D{{Key: "isdbgrid", Value: 1}}); got["isdbgrid"] != int32(1) || got["hostname"] != "host:27017" {
		t.Errorf("isdbgrid: %v", got)
	}
	if got := sub(t, run(t, table, driver.D{{Key: "connectionStatus", Value: 1}, {Key: "showPrivileges", Value: true}}), "authInfo"); len(got) != 3 {
		t.Errorf("connectionStatus: %v", got)
	}
	if got := sub(t, run(t, table, driver.D{{Key: "connectionStatus", Value: 1}}), "authInfo"); len(got) != 2 {
		t.Errorf("connectionStatus: %v", got)
	}
	if got := run(t, table, driver.D{{Key: "getCmdLineOpts", Value: 1}}); !slices.Equal(got["argv"].(driver.A), driver.A{"oxbow", "serve"}) {
		t.Errorf("getCmdLineOpts: %v", got)
	}
	if got := sub(t, run(t, table, driver.D{{Key: "hostInfo", Value: 1}}), "system"); got["numCores"].(int32) < 1 {
		t.Errorf("hostInfo: %v", got)
	}
	small := newTable(func(d *Deps) { d.Server.Memory, d.Server.MemoryLimit = 4<<30, 1<<30 })
	if got := sub(t, run(t, small, driver.D{{Key: "hostInfo", Value: 1}}), "system"); got["memSizeMB"] != int64(4096) || got["memLimitMB"] != int64(1024) {
		t.Errorf("hostInfo in a small container: %v", got)
	}
	commands := sub(t, run(t, table, driver.D{{Key: "listCommands", Value: 1}}), "commands")
	for name, e := range table.byName {
		if _, listed := commands[name]; listed != (name == e.name) {
			t.Errorf("listCommands: %s listed: %v", name, listed)
		}
		if e.Help == "" {
			t.Errorf("%s has no help", name)
		}
	}
	if got := sub(t, run(t, table, driver.D{{Key: "getDefaultRWConcern", Value: 1}}), "defaultWriteConcern"); got["w"] != int32(1) {
		t.Errorf("getDefaultRWConcern: %v", got)
	}
}

func TestGatewayAggregations(t *testing.T) {
	table := newTable()
	stage := func(s driver.D) driver.D {
		return driver.D{{Key: "aggregate", Value: 1}, {Key: "pipeline", Value: driver.A{s}}, {Key: "cursor", Value: driver.D{}}}
	}
	idle := &Conn{ID: 9}
	table.Operations().Connect(idle)
	table.Operations().Connect(idle)
	defer table.Operations().Disconnect(idle)
	sid, _ := table.deps.Sessions.Start("", time.Now())
	if _, err := table.deps.Cursors.Add(&content{}, cursor.Options{Namespace: "a.b", Session: &sid}, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		stage driver.D
		code  mongoerr.Code
		docs  int
	}{
		{driver.D{{Key: "$currentOp", Value: driver.D{}}}, 0, 1},
		{driver.D{{Key: "$currentOp", Value: driver.D{{Key: "allUsers", Value: true}, {Key: "idleConnections", Value: true}, {Key: "idleCursors", Value: true}, {Key: "idleSessions", Value: true}}}}, 0, 4},
		{driver.D{{Key: "$currentOp", Value: driver.D{{Key: "x", Value: true}}}}, mongoerr.FailedToParse, 0},
		{driver.D{{Key: "$currentOp", Value: 1}}, mongoerr.FailedToParse, 0},
		{driver.D{{Key: "$listLocalSessions", Value: driver.D{}}}, 0, 1},
		{driver.D{{Key: "$nonsense", Value: driver.D{}}}, mongoerr.CommandNotFound, 0},
	} {
		got := run(t, table, stage(c.stage))
		if code(got) != c.code {
			t.Errorf("%v: %v", c.stage, got)
			continue
		}
		if c.code == 0 {
			cur := sub(t, got, "cursor")
			if docs := cur["firstBatch"].(driver.A); len(docs) != c.docs || cur["id"] != int64(0) || cur["ns"] != "admin.$cmd.aggregate" {
				t.Errorf("%v: %v", c.stage, cur)
			}
		}
	}
	many := driver.D{{Key: "$project", Value: driver.D{{Key: "text", Value: strings.Repeat("x", 1000)}, {Key: "n", Value: driver.D{{Key: "$range", Value: driver.A{0, 20_000}}}}}}}
	pipeline := driver.A{driver.D{{Key: "$currentOp", Value: driver.D{}}}, many, driver.D{{Key: "$unwind", Value: "$n"}}}
	if got := run(t, table, driver.D{{Key: "aggregate", Value: 1}, {Key: "pipeline", Value: pipeline}, {Key: "cursor", Value: driver.D{}}}); code(got) != mongoerr.BSONObjectTooLarge {
		t.Errorf("a list of more than 16 MiB: %v", code(got))
	}
	if got := run(t, table, append(stage(driver.D{{Key: "$currentOp", Value: driver.D{}}}), driver.E{Key: "$db", Value: "x"})); code(got) != mongoerr.InvalidNamespace {
		t.Errorf("$currentOp elsewhere: %v", got)
	}
}

func TestConfigCollections(t *testing.T) {
	table := newTable()
	find := func(collection string, extra ...driver.E) driver.M {
		return run(t, table, append(driver.D{{Key: "find", Value: collection}, {Key: "$db", Value: "config"}}, extra...))
	}
	for collection, want := range map[string]int{"shards": 1, "version": 1, "mongos": 1, "settings": 0, "chunks": 0, "databases": 0} {
		got := find(collection)
		if n := len(sub(t, got, "cursor")["firstBatch"].(driver.A)); n != want {
			t.Errorf("config.%s: %v", collection, got)
		}
	}
	if got := find("shards", driver.E{Key: "skip", Value: 5}, driver.E{Key: "limit", Value: 1}); len(sub(t, got, "cursor")["firstBatch"].(driver.A)) != 0 {
		t.Errorf("skipped: %v", got)
	}
	if got := find("shards", driver.E{Key: "filter", Value: driver.D{{Key: "_id", Value: "other"}}}); len(sub(t, got, "cursor")["firstBatch"].(driver.A)) != 0 {
		t.Errorf("filtered: %v", got)
	}
	got := find("shards", driver.E{Key: "filter", Value: driver.D{{Key: "state", Value: 1}}}, driver.E{Key: "projection", Value: driver.D{{Key: "host", Value: 1}, {Key: "_id", Value: 0}}})
	if docs := sub(t, got, "cursor")["firstBatch"].(driver.A); len(docs) != 1 || len(docs[0].(driver.D)) != 1 {
		t.Errorf("projected: %v", got)
	}
	if got := find("shards", driver.E{Key: "filter", Value: driver.D{{Key: "a", Value: driver.D{{Key: "$nonsense", Value: 1}}}}}); code(got) != mongoerr.BadValue {
		t.Errorf("unknown operator: %v", got)
	}
	if got := find("shards", driver.E{Key: "nonsense", Value: 5}); code(got) != mongoerr.IDLUnknownField {
		t.Errorf("unknown field: %v", got)
	}
	if got := find("others"); code(got) != mongoerr.CommandNotFound {
		t.Errorf("a collection that is not the gateway's: %v", got)
	}
}

func TestCurrentOpFilters(t *testing.T) {
	table := newTable()
	for filter, want := range map[string]int{"currentOp": 1, "other": 0} {
		got := run(t, table, driver.D{{Key: "currentOp", Value: 1}, {Key: "$ownOps", Value: true}, {Key: "command." + filter, Value: driver.D{{Key: "$exists", Value: true}}}})
		if ops := got["inprog"].(driver.A); len(ops) != want {
			t.Errorf("%s: %v", filter, got)
		}
	}
}

func TestKillOpArguments(t *testing.T) {
	table := newTable()
	for _, c := range []struct {
		op   any
		code mongoerr.Code
	}{{int32(12345), 0}, {12345.0, 0}, {"x", mongoerr.TypeMismatch}, {1.5, mongoerr.BadValue}, {int64(1) << 40, 26823}} {
		if got := run(t, table, driver.D{{Key: "killOp", Value: 1}, {Key: "op", Value: c.op}}); code(got) != c.code {
			t.Errorf("%v: %v", c.op, got)
		}
	}
	if got := run(t, table, driver.D{{Key: "killOp", Value: 1}}); code(got) != mongoerr.NoSuchKey {
		t.Errorf("without op: %v", got)
	}
}
