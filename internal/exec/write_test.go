package exec

import (
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"
)

// TestDerivedSessions: on backends that are servers each partition's part of a retryable write has a session of its own, the same one at each try, with the
// client's numbers; so that a server takes no part for a retry of another. A backend that writes over several namespaces gets the client's own.
func TestDerivedSessions(t *testing.T) {
	const insert = `{"insert": "c", "ordered": false, "documents": [{"_id": 1, "k": 0}, {"_id": 2, "k": 1}, {"_id": 3, "k": 2}],
		"lsid": {"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAA==", "subType": "04"}}}, "txnNumber": 5}`
	f := newFixture(t, "hash")
	sessions := func() map[string]string {
		got := f.run(t, document(t, insert))
		if !strings.Contains(got, `"n": {"$numberInt":"3"}`) {
			t.Fatalf("the insert gave %s", got)
		}
		out := map[string]string{}
		for _, b := range f.backends {
			for _, s := range b.rest() {
				out[s.collection] = text(t, s.request.Body, "lsid") + text(t, s.request.Body, "txnNumber") + numbers(t, s.request.Body)
			}
		}
		return out
	}
	first, again := sessions(), sessions()
	if len(first) != 2 || first["c_0"] == first["c_1"] {
		t.Errorf("sessions %v", first)
	}
	if fmt.Sprint(first) != fmt.Sprint(again) {
		t.Errorf("the retry went out as %v, the first try as %v", again, first)
	}
	for collection, want := range map[string]string{"c_0": ` stmtIds [{"$numberInt":"0"},{"$numberInt":"2"}]`, "c_1": ` stmtId {"$numberInt":"1"}`} {
		if !strings.HasSuffix(first[collection], want) || !strings.Contains(first[collection], `"5"`) {
			t.Errorf("%s was sent %s", collection, first[collection])
		}
	}

	f = newFixture(t, "time")
	f.run(t, document(t, strings.ReplaceAll(insert, `"k"`, `"at": {"$date": "2001-01-01T00:00:00Z"}, "k"`)))
	if got := text(t, f.backends["local"].rest()[0].request.Body, "lsid"); !strings.Contains(got, "AAAAAAAAAAAAAAAAAAAAAA==") {
		t.Errorf("one batch went out in session %s", got)
	}
}

// numbers are the numbers of a command's statements as it says them.
func numbers(t *testing.T, doc bson.Document) string {
	t.Helper()
	for _, key := range []string{"stmtIds", "stmtId"} {
		if _, ok := bson.Get(doc, key); ok {
			return " " + key + " " + text(t, doc, key)
		}
	}
	return ""
}

// TestNumbers: the statements of a part have the numbers of the client's command, written as shortly as a server takes them.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		first int32 // the client's stmtId
		index []int32
		want  string
	}{
		{0, []int32{0}, ""},
		{0, []int32{0, 1, 2}, ""},
		{0, []int32{3, 4}, ` stmtId {"$numberInt":"3"}`},
		{5, []int32{0, 1}, ` stmtId {"$numberInt":"5"}`},
		{0, []int32{1, 3}, ` stmtIds [{"$numberInt":"1"},{"$numberInt":"3"}]`},
		{2, []int32{0, 2}, ` stmtIds [{"$numberInt":"2"},{"$numberInt":"4"}]`},
	} {
		r := Retry{Session: []byte("s"), Stmt: func(i int32) int32 { return c.first + i }}
		body := with(nil, func(dst []byte) []byte { return r.append(dst, backend.Abilities{}, scope{collection: "c"}, c.index) })
		if got := numbers(t, body); got != c.want {
			t.Errorf("%d + %v are sent as%s", c.first, c.index, got)
		}
	}
}

func text(t *testing.T, doc bson.Document, key string) string {
	t.Helper()
	v, ok := bson.Get(doc, key)
	if !ok {
		t.Fatalf("no %s in %s", key, doc)
	}
	return v.String()
}

// TestManyErrors: however many statements fail on however many partitions, with messages however long, the reply stays a document.
func TestManyErrors(t *testing.T) {
	const parts, each = 500, 200
	message := strings.Repeat("x", 1000)
	e := &Executor{Backends: map[string]backend.Backend{}}
	p := &plan.Insert{Namespace: "db.c"}
	reply := failing(each, message)
	for i := range parts {
		name := fmt.Sprint("rs", i)
		b := &scripted{name: name, rules: []*rule{{command: "*", collection: "*", does: "answers", reply: reply, times: -1}}}
		e.Backends[name] = b
		run := plan.Together{Run: plan.Run{Backend: name, Namespaces: []backend.Namespace{{Database: "db", Collection: "c"}}}}
		for k := range each {
			run.Index = append(run.Index, int32(k*parts+i))
			run.Statements = append(run.Statements, bson.Document{5, 0, 0, 0, 0})
		}
		p.Runs = append(p.Runs, run)
	}
	p.Errors = []backend.WriteError{{Index: parts * each, Err: mongoerr.New(mongoerr.BadValue, "%s", message)}}
	r, err := e.Insert(t.Context(), p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Errors) != parts*each+1 {
		t.Errorf("%d errors", len(r.Errors))
	}
	for i, e := range r.Errors {
		if int(e.Index) != i || e.Err.Code == 0 {
			t.Fatalf("error %d is of statement %d: %s", i, e.Index, e.Err)
		}
	}
	if r.Errors[0].Err.Message != message || r.Errors[parts*each].Err.Message != "" {
		t.Error("it is not the first errors that have their text")
	}
	doc := with(nil, func(dst []byte) []byte { return r.Append(dst, false) })
	if len(doc) > bson.MaxDocumentSize {
		t.Errorf("the reply has %d bytes", len(doc))
	}
}

// failing is the reply to an insert all of whose documents fail.
func failing(n int, message string) bson.Document {
	r := backend.WriteReply{}
	for i := range n {
		r.Errors = append(r.Errors, backend.WriteError{Index: int32(i), Err: mongoerr.New(mongoerr.DuplicateKey, "%s", message)})
	}
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst, _ = bsoncore.AppendDocumentEnd(r.Append(dst, false), at)
	return dst
}
