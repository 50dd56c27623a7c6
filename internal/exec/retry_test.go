package exec

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
)

// retried are commands with one retryable statement whose filter leaves all partitions, or with %q one, and which a driver sends again as they are.
var retried = map[string]string{
	"update":  `{"update": "c", "updates": [{"q": {%q}, "u": {"$inc": {"n": 1}}}], %s}`,
	"upsert":  `{"update": "c", "updates": [{"q": {%q}, "u": {"$inc": {"n": 1}}, "upsert": true}], %s}`,
	"delete":  `{"delete": "c", "deletes": [{"q": {%q}, "limit": 1}], %s}`,
	"modify":  `{"findAndModify": "c", "query": {%q}, "update": {"$inc": {"n": 1}}, "new": true, %s}`,
	"sorted":  `{"findAndModify": "c", "query": {%q}, "sort": {"rank": 1}, "update": {"$inc": {"n": 1}, "$set": {"rank": 1000}}, %s}`,
	"taken":   `{"findAndModify": "c", "query": {%q, "n": 0}, "sort": {"rank": 1}, "update": {"$inc": {"n": 1}}, "new": true, %s}`,
	"removed": `{"findAndModify": "c", "query": {%q}, "sort": {"rank": -1}, "remove": true, %s}`,
	"made":    `{"findAndModify": "c", "query": {%q}, "update": {"$inc": {"n": 1}}, "upsert": true, "new": true, %s}`,
}

// TestRetriedOnce: a statement for one document that is sent again, after its reply or that of any of its parts was lost, is done once: whatever others
// have inserted meanwhile into partitions that come before, on whichever deployment it was done.
func TestRetriedOnce(t *testing.T) {
	f := newFixture(t, "spread")
	var names []string
	for name := range retried {
		names = append(names, name)
	}
	round := 0
	rapid.Check(t, func(r *rapid.T) {
		round++
		name := rapid.SampledFrom(names).Draw(r, "command")
		pin := rapid.IntRange(-1, 3).Draw(r, "pinned slot")
		filter := fmt.Sprintf(`"run": %d`, round)
		if pin >= 0 {
			filter += fmt.Sprintf(`, "k": %d`, pin)
		}
		matching := 0
		insert := func(from int, slots []int) {
			for i, slot := range slots {
				f.run(t, document(t, fmt.Sprintf(`{"insert": "c", "documents": [{"_id": %d, "k": %d, "run": %d, "n": 0, "rank": %d}]}`,
					round*100+from+i, slot, round, rapid.IntRange(0, 9).Draw(r, "rank"))))
				if pin < 0 || slot == pin {
					matching++
				}
			}
		}
		count := func(query string) int {
			var n int
			fmt.Sscanf(f.run(t, document(t, fmt.Sprintf(`{"count": "c", "query": {%s, %s}}`, filter, query))), "n %d", &n)
			return n
		}
		slots := rapid.SliceOfN(rapid.IntRange(0, 3), 0, 4)
		insert(0, slots.Draw(r, "there"))
		command := strings.ReplaceAll(retried[name], "%q", filter)
		command = fmt.Sprintf(command, fmt.Sprintf(`"lsid": {"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAA==", "subType": "04"}}}, "txnNumber": %d`, round))
		verb, _, _ := bson.First(document(t, command))
		for range rapid.IntRange(0, 2).Draw(r, "faults") {
			slot := rapid.IntRange(0, 3).Draw(r, "slot")
			f.rule(t, fmt.Sprintf("rs%d %s c_%d %s", slot%2+1, verb, slot, rapid.SampledFrom([]string{"lost", "unavailable"}).Draw(r, "fault")))
		}
		first := f.run(t, document(t, command))
		for _, b := range f.backends {
			b.rules = nil
		}
		insert(50, slots.Draw(r, "others"))
		again := f.run(t, document(t, command))
		third := f.run(t, document(t, command))
		upserts := name == "upsert" || name == "made"
		want := min(matching, 1)
		if upserts {
			want = 1
		}
		done := count(`"n": 1`)
		if name == "delete" || name == "removed" {
			done = matching - count(`"n": 0`)
		}
		if strings.HasPrefix(again, "error") || done != want || count(`"n": {"$gt": 1}`) != 0 || plain(again) != plain(third) {
			r.Fatalf("%s\ndone %d times, not %d\nfirst %safter that %sat last %s", command, done, want, first, again, third)
		}
		if !strings.HasPrefix(first, "error") && !strings.HasPrefix(name, "sorted") && plain(first) != plain(again) && done == 1 && want == 1 && matching > 0 && strings.Contains(first, `"n": {"$numberInt":"1"}`) {
			r.Fatalf("%s\nfirst %safter that %s", command, first, again)
		}
	})
}

// plain is a reply without what tells a retry.
func plain(reply string) string {
	for _, field := range []string{`,"retriedStmtIds": [{"$numberInt":"0"}]`, `,"retriedStmtId": {"$numberInt":"0"}`} {
		reply = strings.ReplaceAll(reply, field, "")
	}
	return reply
}

// TestDerivedSessionsAreApart: a session that is derived is no client's, and none of another client, user, partition or collection.
func TestDerivedSessionsAreApart(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		type part struct {
			session, user string
			scope         scope
		}
		draw := func() part {
			return part{
				string(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(r, "session")), rapid.SampledFrom([]string{"", strings.Repeat("u", 32), strings.Repeat("v", 32)}).Draw(r, "user"),
				scopeOf(rapid.Bool().Draw(r, "pinned"), backend.Namespace{Database: "db", Collection: rapid.SampledFrom([]string{"c", "c_0", "c_01"}).Draw(r, "partition")}, "db.c"),
			}
		}
		a, b := draw(), draw()
		if rapid.Bool().Draw(r, "same session") {
			b.session = a.session
		}
		id := func(p part) string {
			v, _ := bson.Get(with(nil, func(dst []byte) []byte { return p.scope.appendDerived(dst, []byte(p.session+p.user)) }), "lsid")
			v, _ = bson.Get(v.Data, "id")
			_, data, _ := v.BinaryOK()
			return string(data)
		}
		if (id(a) == id(b)) != (a == b) {
			r.Fatalf("%v and %v have the sessions %x and %x", a, b, id(a), id(b))
		}
		if id(a) == a.session || id(a)[6]>>4 != 8 {
			r.Fatalf("%v has the session %x, which can be a client's", a, id(a))
		}
	})
}

// TestNumberOfFindAndModify: findAndModify has a stmtId, and no stmtIds, which MongoDB refuses.
func TestNumberOfFindAndModify(t *testing.T) {
	f := newFixture(t, "hash")
	f.run(t, document(t, `{"findAndModify": "c", "query": {"_id": 1}, "remove": true,
		"lsid": {"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAA==", "subType": "04"}}}, "txnNumber": 5}`))
	for name, b := range f.backends {
		for _, s := range b.rest() {
			if _, has := bson.Get(s.request.Body, "stmtIds"); has || text(t, s.request.Body, "txnNumber") != `{"$numberLong":"5"}` {
				t.Errorf("%s was sent %s", name, s.request.Body)
			}
		}
	}
	r := Retry{Stmt: func(int32) int32 { return 7 }, Session: []byte("s")}
	if body := bson.Document(with(nil, func(dst []byte) []byte { return r.appendOne(dst, backend.Abilities{}, scope{collection: "x"}) })); text(t, body, "stmtId") != `{"$numberInt":"7"}` {
		t.Errorf("statement 7 is %s", body)
	}
}

// TestRetriedInsertOfFindAndModify: a server that has an insert on record answers only a findAndModify that may insert; it is sent as one then.
func TestRetriedInsertOfFindAndModify(t *testing.T) {
	f := newFixture(t, "hash")
	f.rule(t, `rs2 findAndModify c_1 answers {"ok": 0, "code": 40608, "errmsg": "not compatible with previous write in the transaction of type: insert"}`)
	got := f.run(t, document(t, `{"findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"n": 1}}, "upsert": true, "new": true,
		"lsid": {"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAA==", "subType": "04"}}}, "txnNumber": 5}`))
	if !strings.Contains(got, `"upserted"`) {
		t.Errorf("the answer is %s", got)
	}
	sessions := map[string]bool{}
	log := f.backends["rs2"].rest()
	for _, s := range log {
		sessions[text(t, s.request.Body, "lsid")] = true
	}
	last := log[len(log)-1]
	if up, _ := bson.Get(last.request.Body, "upsert"); len(sessions) != 1 || up.Type == 0 {
		t.Errorf("%d sessions, the last is %s", len(sessions), last.request.Body)
	}
}
