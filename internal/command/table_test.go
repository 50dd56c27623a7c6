package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/cursor"
	"oxbow/internal/mongoerr"
)

func countersOf(most int64) *Counters {
	c := &Counters{}
	c.ConnectionsMax.Store(most)
	return c
}

func newTable(change ...func(*Deps)) *Table {
	d := Deps{
		Log:      slog.New(slog.NewTextHandler(io.Discard, nil)),
		Now:      time.Now,
		Sessions: cursor.NewSessions(cursor.SessionTimeout),
		Cursors:  cursor.NewRegistry(cursor.IdleTimeout, nil),
		Counters: countersOf(10),
		Server:   ServerInfo{Version: "7.0.14", Build: "test", Host: "host:27017", Address: "127.0.0.1:27017", Started: time.Now()},
	}
	for _, c := range change {
		c(&d)
	}
	return New(d)
}

// doc encodes a document written as the driver writes it.
func doc(t testing.TB, d driver.D) bson.Document {
	t.Helper()
	b, err := driver.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// run runs a command against admin unless it names a database, and returns its reply.
func run(t testing.TB, table *Table, d driver.D) driver.M {
	t.Helper()
	return runRequest(t, table, t.Context(), &Request{Body: doc(t, onAdmin(d))})
}

func onAdmin(d driver.D) driver.D {
	for _, e := range d {
		if e.Key == "$db" {
			return d
		}
	}
	return append(d[:len(d):len(d)], driver.E{Key: "$db", Value: "admin"})
}

func runRequest(t testing.TB, table *Table, ctx context.Context, req *Request) driver.M {
	t.Helper()
	if req.Conn == nil {
		req.Conn = &Conn{ID: 7, Remote: "127.0.0.1:5000"}
	}
	reply := Reply{Elements: []byte("front")}
	table.Run(ctx, req, &reply)
	b := reply.Document
	if b == nil {
		b = bson.Document(strings.TrimPrefix(string(reply.Elements), "front"))
	}
	if err := bson.Validate(b, bson.MaxDepth); err != nil {
		t.Fatalf("the reply is no document: %v", err)
	}
	var m driver.M
	if err := driver.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// code is the error code of a reply, 0 for ok.
func code(m driver.M) mongoerr.Code {
	if m["ok"] == 1.0 {
		return 0
	}
	return mongoerr.Code(m["code"].(int32))
}

var uuid = driver.Binary{Subtype: 4, Data: []byte("0123456789abcdef")}

func lsid() driver.D { return driver.D{{Key: "id", Value: uuid}} }

// fieldsNamed are fields f0, f1 and so on.
func fieldsNamed(n int) driver.D {
	var d driver.D
	for i := range n {
		d = append(d, driver.E{Key: "f" + strconv.Itoa(i), Value: 1})
	}
	return d
}

func TestWhatEveryCommandIsCheckedFor(t *testing.T) {
	table := newTable()
	with := func(extra ...driver.E) driver.D { return append(driver.D{{Key: "ping", Value: 1}}, extra...) }
	e := func(k string, v any) driver.E { return driver.E{Key: k, Value: v} }
	for _, c := range []struct {
		name    string
		command driver.D
		code    mongoerr.Code
		message string
	}{
		{"plain", with(), 0, ""},
		{"everything", with(e("lsid", lsid()), e("txnNumber", int64(3)), e("apiVersion", "1"), e("apiStrict", true), e("apiDeprecationErrors", true),
			e("$readPreference", driver.D{{Key: "mode", Value: "nearest"}}), e("$clusterTime", driver.D{}), e("maxTimeMS", 5000.0), e("comment", driver.A{1}),
			e("readConcern", driver.D{{Key: "level", Value: "local"}}), e("writeConcern", driver.D{{Key: "w", Value: "majority"}, {Key: "j", Value: true}, {Key: "wtimeout", Value: 1}})), 0, ""},
		{"a field twice", with(e("comment", 1), e("comment", 2)), mongoerr.IDLDuplicateField, "BSON field 'ping.comment' is a duplicate field"},
		{"the name twice", with(e("ping", 1)), mongoerr.IDLDuplicateField, "BSON field 'ping.ping' is a duplicate field"},
		{"a field twice after many", with(append(fieldsNamed(100), e("f99", 1))...), mongoerr.IDLDuplicateField, "BSON field 'ping.f99' is a duplicate field"},
		{"many fields", with(fieldsNamed(100)...), 0, ""},
		{"database not a string", with(e("$db", 1)), mongoerr.TypeMismatch, "BSON field '$db' is the wrong type 'int', expected type 'string'"},
		{"database empty", with(e("$db", "")), mongoerr.InvalidNamespace, "Invalid database name: ''"},
		{"database with a dot", with(e("$db", "a.b")), mongoerr.InvalidNamespace, "Invalid database name: 'a.b'"},
		{"database too long", with(e("$db", strings.Repeat("x", 64))), mongoerr.InvalidNamespace, ""},
		{"lsid not an object", with(e("lsid", "x")), mongoerr.TypeMismatch, ""},
		{"lsid without id", with(e("lsid", driver.D{})), mongoerr.IDLMissingField, "BSON field 'lsid.id' is missing but a required field"},
		{"lsid with more", with(e("lsid", driver.D{{Key: "id", Value: uuid}, {Key: "x", Value: 1}})), mongoerr.IDLUnknownField, "BSON field 'lsid.x' is an unknown field."},
		{"lsid of another subtype", with(e("lsid", driver.D{{Key: "id", Value: driver.Binary{Data: uuid.Data}}})), mongoerr.TypeMismatch, ""},
		{"lsid too short", with(e("lsid", driver.D{{Key: "id", Value: driver.Binary{Subtype: 4, Data: []byte("x")}}})), mongoerr.TypeMismatch, ""},
		{"txnNumber without lsid", with(e("txnNumber", int64(1))), mongoerr.InvalidOptions, "Transaction number requires a session ID to also be specified"},
		{"txnNumber negative", with(e("lsid", lsid()), e("txnNumber", int64(-1))), mongoerr.InvalidOptions, "Transaction number cannot be negative"},
		{"txnNumber a string", with(e("lsid", lsid()), e("txnNumber", "1")), mongoerr.TypeMismatch, ""},
		{"a transaction", with(e("lsid", lsid()), e("txnNumber", int64(1)), e("startTransaction", true), e("autocommit", false)), mongoerr.OperationNotSupportedInTxn, "Cannot run 'ping' in a multi-document transaction."},
		{"a transaction that commits itself", with(e("lsid", lsid()), e("txnNumber", int64(1)), e("startTransaction", true), e("autocommit", true)), mongoerr.InvalidOptions, "Specifying autocommit=true is not allowed."},
		{"a transaction that doesn't start", with(e("lsid", lsid()), e("txnNumber", int64(1)), e("startTransaction", false), e("autocommit", false)), mongoerr.InvalidOptions, "Specifying startTransaction=false is not allowed."},
		{"the start of a transaction without autocommit", with(e("lsid", lsid()), e("txnNumber", int64(1)), e("startTransaction", true)), mongoerr.InvalidOptions, "'startTransaction' field requires 'autocommit' field to also be specified"},
		{"a transaction without a number", with(e("lsid", lsid()), e("autocommit", false)), mongoerr.InvalidOptions, "'autocommit' field requires a transaction number to also be specified"},
		{"apiVersion 2", with(e("apiVersion", "2")), mongoerr.APIVersionError, `API version must be "1"`},
		{"apiVersion a number", with(e("apiVersion", 1)), mongoerr.TypeMismatch, ""},
		{"apiStrict alone", with(e("apiStrict", true)), 4886600, ""},
		{"apiDeprecationErrors alone", with(e("apiDeprecationErrors", true)), 4886600, ""},
		{"maxTimeMS a string", with(e("maxTimeMS", "1")), mongoerr.BadValue, "maxTimeMS must be a number"},
		{"maxTimeMS negative", with(e("maxTimeMS", -1)), mongoerr.BadValue, "-1 value for maxTimeMS is out of range [0, 2147483647]"},
		{"maxTimeMS with a fraction", with(e("maxTimeMS", 1.5)), mongoerr.BadValue, "maxTimeMS has non-integral value"},
		{"readConcern a string", with(e("readConcern", "local")), mongoerr.TypeMismatch, ""},
		{"readConcern of no known level", with(e("readConcern", driver.D{{Key: "level", Value: "x"}})), mongoerr.BadValue, "Enumeration value 'x' for field 'readConcern.level' is not a valid value."},
		{"readConcern with more", with(e("readConcern", driver.D{{Key: "x", Value: 1}})), mongoerr.IDLUnknownField, "BSON field 'readConcern.x' is an unknown field."},
		{"writeConcern a number", with(e("writeConcern", 1)), mongoerr.TypeMismatch, ""},
		{"writeConcern w negative", with(e("writeConcern", driver.D{{Key: "w", Value: -1}})), mongoerr.FailedToParse, ""},
		{"writeConcern with more", with(e("writeConcern", driver.D{{Key: "x", Value: 1}})), mongoerr.IDLUnknownField, ""},
		{"read preference without mode", with(e("$readPreference", driver.D{})), mongoerr.IDLMissingField, ""},
		{"read preference of no known mode", with(e("$readPreference", driver.D{{Key: "mode", Value: "x"}})), mongoerr.FailedToParse, ""},
		{"staleness too small", with(e("$readPreference", driver.D{{Key: "mode", Value: "nearest"}, {Key: "maxStalenessSeconds", Value: 89}})), mongoerr.MaxStalenessOutOfRange, "maxStalenessSeconds value can not be less than 90"},
		{"staleness of the primary", with(e("$readPreference", driver.D{{Key: "mode", Value: "primary"}, {Key: "maxStalenessSeconds", Value: 120}})), mongoerr.BadValue, ""},
		{"staleness a string", with(e("$readPreference", driver.D{{Key: "mode", Value: "nearest"}, {Key: "maxStalenessSeconds", Value: "120"}})), mongoerr.BadValue, ""},
		{"staleness allowed", with(e("$readPreference", driver.D{{Key: "mode", Value: "nearest"}, {Key: "maxStalenessSeconds", Value: 90.0}})), 0, ""},
		{"staleness not set", with(e("$readPreference", driver.D{{Key: "mode", Value: "nearest"}, {Key: "maxStalenessSeconds", Value: -1}})), 0, ""},
		{"unknown command", driver.D{{Key: "foo", Value: 1}}, mongoerr.CommandNotFound, "no such command: 'foo'"},
		{"names are case-sensitive", driver.D{{Key: "Ping", Value: 1}}, mongoerr.CommandNotFound, "no such command: 'Ping'"},
		{"unknown field", driver.D{{Key: "whatsmyuri", Value: 1}, {Key: "x", Value: 1}}, mongoerr.IDLUnknownField, "BSON field 'whatsmyuri.x' is an unknown field."},
		{"not on admin", driver.D{{Key: "killOp", Value: 1}, {Key: "$db", Value: "x"}}, mongoerr.Unauthorized, "killOp may only be run against the admin database."},
		{"not in the Stable API", driver.D{{Key: "serverStatus", Value: 1}, {Key: "apiVersion", Value: "1"}, {Key: "apiStrict", Value: true}}, mongoerr.APIStrictError, ""},
	} {
		got := run(t, table, c.command)
		if code(got) != c.code {
			t.Errorf("%s: code %d, want %d: %v", c.name, code(got), c.code, got)
			continue
		}
		if c.message != "" && got["errmsg"] != c.message {
			t.Errorf("%s: message %q, want %q", c.name, got["errmsg"], c.message)
		}
		if c.code != 0 && got["codeName"] != c.code.String() {
			t.Errorf("%s: code name %v", c.name, got["codeName"])
		}
	}
	if got := runRequest(t, table, t.Context(), &Request{Body: doc(t, driver.D{{Key: "ping", Value: 1}})}); code(got) != 40571 {
		t.Errorf("no $db: %v", got)
	}
	if got := runRequest(t, table, t.Context(), &Request{Body: doc(t, driver.D{})}); code(got) != mongoerr.CommandNotFound {
		t.Errorf("an empty document: %v", got)
	}
}

func TestRequestAsTheHandlerSeesIt(t *testing.T) {
	table := newTable()
	var seen *Request
	table.Register("look", Entry{Aliases: []string{"Look"}, Handler: func(_ context.Context, req *Request, reply *Reply) error {
		seen = req
		docs, ok := req.Sequence("documents")
		reply.Elements = bsoncore.AppendInt32Element(reply.Elements, "n", int32(len(docs)))
		reply.Elements = bsoncore.AppendBooleanElement(reply.Elements, "has", ok)
		return nil
	}})
	body := driver.D{{Key: "Look", Value: "things"}, {Key: "$db", Value: "shop"}, {Key: "lsid", Value: lsid()}, {Key: "txnNumber", Value: int64(4)}, {Key: "maxTimeMS", Value: int64(250)}}
	got := runRequest(t, table, t.Context(), &Request{
		Body:      doc(t, body),
		Sequences: []backend.Sequence{{Name: "documents", Documents: []bson.Document{doc(t, driver.D{}), doc(t, driver.D{})}}},
	})
	if code(got) != 0 || got["n"] != int32(2) || got["has"] != true {
		t.Fatal(got)
	}
	if seen.Name != "look" || seen.Database != "shop" || seen.Argument.StringValue() != "things" || seen.TxnNumber != 4 ||
		!seen.HasTxnNumber || seen.MaxTime != 250*time.Millisecond || string(seen.Session.UUID[:]) != string(uuid.Data) {
		t.Fatalf("seen: %s of %s, %v, %v", seen.Name, seen.Database, seen.Argument, seen.Arguments)
	}
	if table.deps.Sessions.Len() != 1 {
		t.Fatal("the session is not known now")
	}
}

func TestErrorsOfHandlers(t *testing.T) {
	table := newTable()
	var fail error
	table.Register("fail", Entry{Writes: true, Handler: func(_ context.Context, _ *Request, reply *Reply) error {
		reply.Elements = bsoncore.AppendInt32Element(reply.Elements, "left", 1)
		if fail == nil {
			panic("at the disco")
		}
		return fail
	}})
	retried := driver.D{{Key: "fail", Value: 1}, {Key: "lsid", Value: lsid()}, {Key: "txnNumber", Value: int64(1)}}
	for _, c := range []struct {
		name    string
		err     error
		command driver.D
		code    mongoerr.Code
		labels  int
	}{
		{"its own", fmt.Errorf("insert: %w", mongoerr.New(mongoerr.DuplicateKey, "E11000")), retried, mongoerr.DuplicateKey, 0},
		{"any other", errors.New("disk on fire"), retried, mongoerr.InternalError, 0},
		{"a panic", nil, retried, mongoerr.InternalError, 0},
		{"retryable", mongoerr.New(mongoerr.HostUnreachable, "gone"), retried, mongoerr.HostUnreachable, 1},
		{"retryable, not retried", mongoerr.New(mongoerr.HostUnreachable, "gone"), driver.D{{Key: "fail", Value: 1}}, mongoerr.HostUnreachable, 0},
		{"labelled already", &mongoerr.Error{Code: mongoerr.HostUnreachable, Labels: []string{"RetryableWriteError"}}, retried, mongoerr.HostUnreachable, 1},
	} {
		fail = c.err
		got := run(t, table, c.command)
		labels, _ := got["errorLabels"].(driver.A)
		if code(got) != c.code || len(labels) != c.labels {
			t.Errorf("%s: %v", c.name, got)
		}
		if _, left := got["left"]; left {
			t.Errorf("%s: the reply holds what the handler wrote before it failed", c.name)
		}
	}
	fail = &mongoerr.Error{Code: mongoerr.DuplicateKey, Message: "dup", Info: doc(t, driver.D{{Key: "keyValue", Value: driver.D{{Key: "a", Value: 1}}}})}
	if got := run(t, table, retried); got["keyValue"] == nil {
		t.Errorf("further fields are lost: %v", got)
	}
	if n := table.deps.Counters.Panics.Load(); n != 1 {
		t.Errorf("%d panics counted", n)
	}
}

func TestFallbackAndDocumentReplies(t *testing.T) {
	whole := doc(t, driver.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: int32(59)}})
	table := newTable(func(d *Deps) {
		d.Fallback = func(_ context.Context, req *Request, reply *Reply) error {
			if req.Name != "whoKnows" {
				t.Errorf("name %q", req.Name)
			}
			reply.Document = whole
			return nil
		}
	})
	if got := run(t, table, driver.D{{Key: "whoKnows", Value: 1}}); code(got) != mongoerr.CommandNotFound {
		t.Fatal(got)
	}
}

func TestTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		table.Register("wait", Entry{Handler: func(ctx context.Context, _ *Request, _ *Reply) error {
			<-ctx.Done()
			return fmt.Errorf("wait: %w", ctx.Err())
		}})
		start := time.Now()
		got := run(t, table, driver.D{{Key: "wait", Value: 1}, {Key: "maxTimeMS", Value: 1500}})
		if code(got) != mongoerr.MaxTimeMSExpired || time.Since(start) != 1500*time.Millisecond {
			t.Fatal(got, time.Since(start))
		}
	})
}

func TestKillOpInterruptsAndCurrentOpShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		table.Register("wait", Entry{Handler: func(ctx context.Context, _ *Request, _ *Reply) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		waiter := driver.D{{Key: "wait", Value: "things"}, {Key: "$db", Value: "shop"}, {Key: "lsid", Value: lsid()}, {Key: "pad", Value: strings.Repeat("x", 5000)}}
		result := make(chan driver.M, 1)
		start := func() {
			go func() { result <- run(t, table, waiter) }()
			synctest.Wait()
		}
		start()
		time.Sleep(3 * time.Second)
		ops := run(t, table, driver.D{{Key: "currentOp", Value: 1}})["inprog"].(driver.A)
		var op driver.M
		for _, o := range ops {
			if b, _ := driver.Marshal(o); b != nil {
				var m driver.M
				if err := driver.Unmarshal(b, &m); err != nil {
					t.Fatal(err)
				}
				if m["ns"] == "shop.things" {
					op = m
				}
			}
		}
		if op == nil || op["secs_running"] != int64(3) || len(ops) != 2 {
			t.Fatalf("currentOp gives %v", ops)
		}
		if b, _ := driver.Marshal(op); len(b) > 1000 {
			t.Fatalf("a large command is shown with %d bytes", len(b))
		}
		if got := run(t, table, driver.D{{Key: "killOp", Value: 1}, {Key: "op", Value: op["opid"]}}); code(got) != 0 {
			t.Fatal(got)
		}
		if got := <-result; code(got) != mongoerr.Interrupted {
			t.Fatalf("killed: %v", got)
		}
		start()
		if got := run(t, table, driver.D{{Key: "killSessions", Value: driver.A{lsid()}}}); code(got) != 0 {
			t.Fatal(got)
		}
		if got := <-result; code(got) != mongoerr.Interrupted {
			t.Fatalf("its session killed: %v", got)
		}
		if n := table.Operations().Running(); n != 0 {
			t.Fatalf("%d operations left", n)
		}
	})
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable()
		hello := run(t, table, driver.D{{Key: "hello", Value: 1}})
		waiting := make(chan driver.M, 1)
		go func() {
			waiting <- run(t, table, driver.D{{Key: "hello", Value: 1}, {Key: "topologyVersion", Value: hello["topologyVersion"]}, {Key: "maxAwaitTimeMS", Value: 10_000}})
		}()
		synctest.Wait()
		table.Drain()
		table.Drain()
		if got := <-waiting; code(got) != mongoerr.ShutdownInProgress {
			t.Fatalf("a waiting hello got %v", got)
		}
		if got := run(t, table, driver.D{{Key: "ping", Value: 1}}); code(got) != mongoerr.ShutdownInProgress {
			t.Fatalf("a ping got %v", got)
		}
	})
}
