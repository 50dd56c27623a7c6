package kill

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/deployment"
	"oxbow/internal/maintain"
)

// set is a scripted replica set of two members that hold data, each of which runs what it is told to.
type set struct {
	t       *testing.T
	running map[string][]string // documents of $currentOp, by host
	killed  []string            // host and opid
	stays   bool                // killed operations go on
	refuses bool                // killOp is refused
	counts  map[string]int64    // by collection
}

type member struct {
	*set
	host string
}

func (s *set) Members(context.Context) ([]deployment.Member, error) {
	return []deployment.Member{{Host: "a", Set: "rs", State: deployment.Primary}, {Host: "b", Set: "rs", State: deployment.Secondary}, {Host: "c", Set: "rs", State: deployment.Arbiter}}, nil
}

func (s *set) On(_ context.Context, host string) (backend.Backend, error) {
	if host == "c" {
		s.t.Error("the arbiter was asked")
	}
	return member{s, host}, nil
}

func (member) Abilities() backend.Abilities { return backend.Abilities{} }
func (member) Close() error                 { return nil }

func (m member) Run(_ context.Context, req *backend.Request) (bson.Document, error) {
	name, argument, _ := bson.First(req.Body)
	switch name {
	case "aggregate":
		return bsontest.Doc(m.t, fmt.Sprintf(`{"cursor": {"firstBatch": [%s], "id": {"$numberLong": "0"}, "ns": "admin.$cmd.aggregate"}, "ok": 1}`, strings.Join(m.running[m.host], ","))), nil
	case "count":
		on, _ := argument.StringValueOK()
		return bsontest.Doc(m.t, fmt.Sprintf(`{"n": %d, "ok": 1}`, m.counts[on])), nil
	case "explain":
		return bsontest.Doc(m.t, `{"queryPlanner": {"winningPlan": {"stage": "IXSCAN"}}, "ok": 1}`), nil
	case "killOp":
		op, _ := bson.Get(req.Body, "op")
		number, _ := op.AsInt64OK()
		m.killed = append(m.killed, fmt.Sprintf("%s %d", m.host, number))
		if m.refuses {
			return bsontest.Doc(m.t, `{"ok": 0, "code": 13, "errmsg": "not authorized on admin to execute command"}`), nil
		}
		if !m.stays {
			m.running[m.host] = slices.DeleteFunc(m.running[m.host], func(doc string) bool { return strings.Contains(doc, fmt.Sprintf(`"opid": %d,`, number)) })
		}
		return bsontest.Doc(m.t, `{"info": "attempting to kill op", "ok": 1}`), nil
	}
	m.t.Errorf("%s was sent", name)
	return nil, backend.ErrUnavailable
}

// op is an operation as a server shows it.
func op(id int, kind, ns, plan string, seconds int, more string) string {
	command := `{"q": {"flag": 1}, "limit": 0}`
	if kind == "query" {
		_, collection, _ := strings.Cut(ns, ".")
		command = `{"find": "` + collection + `", "filter": {"flag": 1}}`
	}
	if more != "" {
		more = ", " + more
	}
	return fmt.Sprintf(`{"opid": %d, "desc": "conn%d", "client": "10.0.0.1:5", "active": true, "op": %q, "ns": %q, "planSummary": %q, "secs_running": %d, "command": %s%s}`,
		id, id, kind, ns, plan, seconds, command, more)
}

// busy is a set that runs what policies may and may not end.
func busy(t *testing.T) *set {
	return &set{t: t, counts: map[string]int64{"msg": 5_000_000, "small": 10}, running: map[string][]string{
		"a": {
			op(1, "remove", "im.msg", "COLLSCAN", 60, ""),
			op(2, "remove", "im.msg", "IXSCAN { flag: 1 }", 60, ""),
			op(3, "remove", "im.small", "COLLSCAN", 60, ""),
			op(4, "remove", "im.msg", "COLLSCAN", 5, ""),
			op(5, "insert", "im.msg", "", 60, ""),
			op(6, "remove", "local.msg", "COLLSCAN", 60, ""),
			op(7, "remove", "im.msg", "COLLSCAN", 60, `"killPending": true`),
			op(8, "update", "im.msg", "COLLSCAN", 60, `"effectiveUsers": [{"user": "__system", "db": "local"}]`),
			op(9, "query", "im.msg", "", 60, ""), // its plan is not reported, and is found to use an index
			`{"opid": 10, "desc": "IndexBuildsCoordinatorMongod-0", "active": true, "op": "command", "ns": "im.msg", "command": {"createIndexes": "msg"}, "secs_running": 900}`,
			`{"opid": 11, "desc": "TTLMonitor", "active": true, "op": "remove", "ns": "im.msg", "planSummary": "COLLSCAN", "command": {"q": {"t": 1}, "limit": 0}, "secs_running": 900}`,
			`{"opid": 12, "desc": "conn12", "client": "c", "active": true, "op": "remove", "ns": "im.msg", "planSummary": "COLLSCAN", "secs_running": 60,
				"command": {"delete": "msg", "comment": "oxbow:job:nightly", "deletes": [{"q": {"t": 1}, "limit": 0}]}}`,
			`{"opid": 13, "desc": "conn13", "client": "c", "active": true, "op": "remove", "ns": "im.msg", "planSummary": "COLLSCAN", "secs_running": 60,
				"command": {"delete": "msg", "comment": "oxbow:allow-scan", "deletes": [{"q": {"t": 1}, "limit": 0}]}}`,
		},
		"b": {op(1, "query", "im.msg", "COLLSCAN", 60, "")},
	}}
}

func jobOn(t *testing.T, s *set, dry bool, policies ...Policy) *Job {
	t.Helper()
	job, err := New(Options{Deployment: s, Policies: policies, DryRun: dry})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// shown lists events.
func shown(events []Event) string {
	var lines []string
	for _, e := range events {
		lines = append(lines, fmt.Sprintf("%s %s %s %s gone:%v %s", e.Policy, e.Action, e.Member, e.Operation, e.Gone, e.Error))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestLook: of what runs, that is ended which a policy is about, on the member where it runs, and nothing else.
func TestLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := busy(t)
		job := jobOn(t, s, false, Policy{Name: "tell", Action: Log}, Policy{Name: "end", Kinds: []string{"remove", "update"}, Namespaces: []string{"im.*"}, Action: Kill})
		events, err := job.Look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := shown(events), "end kill a 1 gone:true \ntell log b 1 gone:false "; got != want {
			t.Errorf("events\n%s\nwant\n%s", got, want)
		}
		if got := strings.Join(s.killed, ", "); got != "a 1" {
			t.Errorf("killed %s", got)
		}
		for _, e := range events {
			if e.Action == "kill" && (!strings.Contains(e.Reason, "remove without an index (COLLSCAN) on im.msg, which has 5000000 documents, more than 1000000; it runs for 1m0s, longer than 30s") ||
				e.Shape != "{flag: ?}") {
				t.Errorf("the event is %+v", e)
			}
		}
		if again, err := job.Look(t.Context()); err != nil || len(again) > 0 {
			t.Errorf("at a second look: %s, %v", shown(again), err)
		}
	})
}

// TestDryRun: nothing is ended, and what would be is told once.
func TestDryRun(t *testing.T) {
	s := busy(t)
	job := jobOn(t, s, true, Policy{Name: "end", Action: Kill})
	events, err := job.Look(t.Context())
	if err != nil || len(events) != 2 || !events[0].DryRun || len(s.killed) > 0 {
		t.Errorf("%s, killed %v, %v", shown(events), s.killed, err)
	}
	if again, err := job.Look(t.Context()); err != nil || len(again) > 0 {
		t.Errorf("at a second look: %s, %v", shown(again), err)
	}
}

// TestKillFails: what can't be killed is tried at each look and told once; what does not end is told after five seconds.
func TestKillFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := busy(t)
		s.refuses = true
		job := jobOn(t, s, false, Policy{Name: "end", Kinds: []string{"remove"}, Action: Kill})
		for look, want := range []int{1, 0, 0} {
			events, err := job.Look(t.Context())
			if err != nil || len(events) != want || want > 0 && !strings.Contains(events[0].Error, "not authorized") {
				t.Errorf("look %d: %s, %v", look, shown(events), err)
			}
		}
		if len(s.killed) != 3 {
			t.Errorf("killed %v", s.killed)
		}

		s = busy(t)
		s.stays = true
		job = jobOn(t, s, false, Policy{Name: "end", Kinds: []string{"remove"}, Action: Kill})
		began := time.Now()
		events, err := job.Look(t.Context())
		if err != nil || len(events) != 1 || events[0].Gone || !strings.Contains(events[0].Error, "still runs 5s after") || time.Since(began) < 5*time.Second {
			t.Errorf("%s after %s, %v", shown(events), time.Since(began), err)
		}
	})
}

// TestStep: steps keep what happened, as much as is kept, and wait between two looks.
func TestStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := busy(t)
		job := jobOn(t, s, false, Policy{Name: "tell", Kinds: []string{"remove"}, Action: Alert})
		var out maintain.Outcome
		began := time.Now()
		for i := range keptEvents + 50 {
			s.running["a"] = []string{op(1000+i, "remove", "im.msg", "COLLSCAN", 60, "")}
			var err error
			if out, err = job.Step(t.Context(), out.Checkpoint, nil); err != nil || out.Done {
				t.Fatalf("%+v, %v", out, err)
			}
		}
		if took := time.Since(began); took != (keptEvents+49)*time.Second {
			t.Errorf("the steps took %s", took)
		}
		events, err := Events(out.Checkpoint)
		if err != nil || len(events) != keptEvents || events[keptEvents-1].Operation != fmt.Sprint(1000+keptEvents+49) {
			t.Errorf("%d events are kept, %v", len(events), err)
		}
	})
}

func TestKind(t *testing.T) {
	parameters := func(text string) bson.Document { return bsontest.Doc(t, text) }
	job, err := Kind(Options{Deployment: busy(t)})(maintain.Spec{ID: "runaway", Namespace: "im.*", Parameters: parameters(
		`{"kinds": ["remove"], "documents": 5, "older": "2m", "action": "kill", "dryRun": true, "every": "3s"}`)})
	if err != nil {
		t.Fatal(err)
	}
	j := job.(*Job)
	if p := j.o.Policies[0]; p.Name != "runaway" || p.Documents != 5 || p.Older != 2*time.Minute || p.Action != Kill || p.Namespaces[0] != "im.*" || !j.o.DryRun || j.o.Every != 3*time.Second {
		t.Errorf("made %+v", j.o)
	}
	for text, want := range map[string]string{
		`{"kinds": ["insert"]}`: "insert", `{"kinds": "remove"}`: "kinds", `{"documents": -1}`: "documents", `{"documents": 0}`: "documents", `{"older": "0s"}`: "older", `{"older": 5}`: "older", `{"older": "soon"}`: "older",
		`{"action": "maim"}`: "action", `{"dryRun": 1}`: "dryRun", `{"tables": 1}`: "no such parameter",
	} {
		if _, err := Kind(Options{})(maintain.Spec{ID: "x", Parameters: parameters(text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := Kind(Options{})(maintain.Spec{ID: "x", Namespace: "im"}); err == nil || !strings.Contains(err.Error(), "no namespace") {
		t.Errorf("half a namespace: %v", err)
	}
}

// TestForgetsOnlyWhatHasEnded: when a job lets go of what it has told of operations that have ended, it tells of one that has become old enough since, and not again
// of one that it has told of.
func TestForgetsOnlyWhatHasEnded(t *testing.T) {
	told, young := op(1, "remove", "im.msg", "COLLSCAN", 60, ""), op(2, "remove", "im.msg", "COLLSCAN", 5, "")
	s := &set{t: t, counts: map[string]int64{"msg": 5_000_000}, running: map[string][]string{"a": {told, young}}}
	job := jobOn(t, s, false, Policy{Name: "tell", Action: Alert})
	look := func(want ...string) {
		t.Helper()
		events, err := job.Look(t.Context())
		var got []string
		for _, e := range events {
			got = append(got, e.Operation)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("told of %v, %v; want %v", got, err, want)
		}
	}
	look("1")
	for i := range firstForget {
		job.first(fmt.Sprintf("a %d tell", 100+i)) // they have ended
	}
	look()
	if len(job.seen) >= firstForget {
		t.Errorf("%d names are kept of operations that have ended", len(job.seen))
	}
	s.running["a"][1] = op(2, "remove", "im.msg", "COLLSCAN", 60, "")
	look("2")
	look()
}
