package exec

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"
)

// asked is a gateway that notes what it is asked, until its lease runs out.
type asked struct {
	left  int // times that it has its lease
	gone  string
	notes []string
}

func (a *asked) Check() error {
	a.notes = append(a.notes, "check")
	if a.left--; a.left < 0 {
		return mongoerr.New(mongoerr.PrimarySteppedDown, "no lease")
	}
	return nil
}

func (a *asked) Begin(t plan.Target) (Sending, error) {
	a.notes = append(a.notes, "begin "+t.Namespace.Collection)
	if t.Namespace.Collection == a.gone {
		return nil, mongoerr.New(mongoerr.StaleConfig, "%s was dropped", a.gone)
	}
	if a.left--; a.left < 0 {
		return nil, mongoerr.New(mongoerr.PrimarySteppedDown, "no lease")
	}
	return a, nil
}

func (a *asked) End(answered bool) { a.notes = append(a.notes, fmt.Sprint("end ", answered)) }

func (a *asked) Limit() time.Duration { return time.Minute }

// Before each send the gateway is asked, and what it refuses is not sent.
func TestSendsAreAsked(t *testing.T) {
	run := func(collection string, index int32) plan.Run {
		return plan.Run{
			Backend: "r", Namespaces: []backend.Namespace{{Database: "d", Collection: collection}},
			Index: []int32{index}, Statements: []bson.Document{bsontest.Doc(t, `{"_id": 1}`)},
		}
	}
	for _, c := range []struct {
		name  string
		asked asked
		want  string // of what was asked
		sent  string
		err   string
	}{
		{"all", asked{left: 2}, "begin c_0, end true, begin c_1, end true", "c_0 c_1", ""},
		{"the lease runs out in between", asked{left: 1}, "begin c_0, end true, begin c_1", "c_0", "PrimarySteppedDown: no lease"},
		{"a partition goes", asked{left: 2, gone: "c_0"}, "begin c_0", "", "StaleConfig: c_0 was dropped"},
	} {
		s := openScripted(t, "r")
		e := &Executor{Backends: map[string]backend.Backend{"r": s}, Sends: &c.asked}
		reply, err := e.Insert(t.Context(), &plan.Insert{Namespace: "d.c", Ordered: true, Runs: []plan.Together{{Run: run("c_0", 0)}, {Run: run("c_1", 1)}}}, Options{})
		if err == nil && len(reply.Errors) > 0 {
			err = reply.Errors[0].Err
		}
		if got := fmt.Sprint(err); got != c.err && (err != nil || c.err != "") {
			t.Errorf("%s: %s, want %s", c.name, got, c.err)
		}
		if got := strings.Join(c.asked.notes, ", "); got != c.want {
			t.Errorf("%s: asked %q, want %q", c.name, got, c.want)
		}
		var sent []string
		for _, l := range s.log {
			sent = append(sent, l.collection)
			if v, _ := bson.Get(l.request.Body, "maxTimeMS"); v.Type != bson.TypeInt64 || v.Int64() != time.Minute.Milliseconds() {
				t.Errorf("%s: sent without its limit: %s", c.name, l.request.Body)
			}
		}
		if got := strings.Join(sent, " "); got != c.sent {
			t.Errorf("%s: sent %q, want %q", c.name, got, c.sent)
		}
	}
}

// A command whose time is over has a limit as well: without one it could run for as long as it likes where it is sent.
func TestLimitOfALateCommand(t *testing.T) {
	e := &Executor{Sends: &asked{left: 10}}
	laid := plan.Target{Backend: "r", Namespace: backend.Namespace{Database: "d", Collection: "c_0"}, Logical: "d.c"}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if _, limit, err := e.begin(ctx, laid, true); err != nil || limit != time.Millisecond {
		t.Errorf("the limit is %v, %v", limit, err)
	}
}

// Only what makes a missing collection again counts as under way; a plain collection is nobody's business.
func TestWhatCountsAsUnderWay(t *testing.T) {
	a := &asked{left: 10}
	e := &Executor{Sends: a}
	laid := plan.Target{Backend: "r", Namespace: backend.Namespace{Database: "d", Collection: "c_0"}, Logical: "d.c"}
	for _, c := range []struct {
		target            plan.Target
		command, document string
		want              string
	}{
		{laid, "insert", `{}`, "begin c_0"},
		{laid, "update", `{"q": {}, "u": {}, "upsert": true}`, "begin c_0"},
		{laid, "update", `{"q": {}, "u": {}, "upsert": false}`, "check"},
		{laid, "update", `{"q": {}, "u": {}}`, "check"},
		{laid, "delete", `{"q": {}, "limit": 0}`, "check"},
		{plan.Target{Backend: "r", Namespace: laid.Namespace}, "insert", `{}`, ""},
	} {
		a.notes = nil
		if _, _, err := e.begin(t.Context(), c.target, makesCollection(c.command, []bson.Document{bsontest.Doc(t, c.document)})); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(a.notes, ", "); got != c.want {
			t.Errorf("%s %s: asked %q, want %q", c.command, c.document, got, c.want)
		}
	}
	if limit := appendLimit(nil, 0); limit != nil {
		t.Errorf("no limit is %x", limit)
	}
	if limit := appendLimit(nil, time.Microsecond); string(limit) != string(bsoncore.AppendInt64Element(nil, "maxTimeMS", 1)) {
		t.Errorf("a short limit is %x: 0 would be none", limit)
	}
}
