package survey

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/deployment"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// replicaSet has a primary, a hidden secondary that is this far behind, and a third member.
func replicaSet(behind time.Duration, third deployment.State) []deployment.Member {
	all := []deployment.Member{
		{Host: "a:27017", Set: "rs1", State: deployment.Primary, Votes: 1, Applied: now},
		{Host: "b:27017", Set: "rs1", State: deployment.Secondary, Votes: 1, Hidden: true, Applied: now.Add(-behind)},
		{Host: "c:27017", Set: "rs1", State: third, Votes: 1, Applied: now},
	}
	if third == deployment.Arbiter {
		all[2].Applied = time.Time{}
	}
	return all
}

// idAt is an ObjectId of an age.
func idAt(age time.Duration, n byte) driver.ObjectID {
	id := driver.NewObjectIDFromTimestamp(now.Add(-age))
	id[11] = n
	return id
}

// withData fills collections with documents that are as they should be.
func withData(s *scripted) {
	for _, ns := range []string{"shop.holes", "shop.cart", "shop.tags", "log.big", "log.session"} {
		var docs []driver.D
		for i := range 200 {
			age := time.Duration(i) * time.Hour
			docs = append(docs, driver.D{{Key: "_id", Value: idAt(age, byte(i))}, {Key: "at", Value: now.Add(-age / 300)}, {Key: "flag", Value: i % 2}})
		}
		s.insert(ns, docs...)
	}
	s.index("log.session", "at")
	s.insert("shop.item", driver.D{{Key: "_id", Value: 1}, {Key: "name", Value: "a boat"}}, driver.D{{Key: "_id", Value: 2}, {Key: "name", Value: "an oar"}})
	s.insert("log.event", driver.D{{Key: "_id", Value: 1}, {Key: "time", Value: now}}, driver.D{{Key: "_id", Value: 2}, {Key: "time", Value: now}})
}

// gathered surveys it, at one look.
func gathered(t *testing.T, s *scripted) *Report {
	t.Helper()
	found, err := Gather(t.Context(), s, Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return &Report{Survey: found, Findings: Find(found, DefaultThresholds, "mongodb://a,b")}
}

// named lists what was found.
func named(r *Report) []string {
	var list []string
	for _, f := range r.Findings {
		list = append(list, f.ID+" "+f.About)
	}
	slices.Sort(list)
	return list
}

// TestTenAilments: a deployment with ten known ailments, and one without any.
func TestTenAilments(t *testing.T) {
	healthy := newScripted(t, replicaSet(time.Second, deployment.Secondary)...)
	withData(healthy)
	if r := gathered(t, healthy); len(r.Findings) > 0 || len(r.Survey.Missing) > 0 {
		t.Errorf("on a healthy deployment: %+v, missing %q", r.Findings, r.Survey.Missing)
	}

	s := newScripted(t, replicaSet(10*time.Minute, deployment.Arbiter)...) // behind, and an arbiter in a majority's place
	withData(s)
	s.figures("shop.holes", driver.M{"storageSize": int64(85 << 30), "freeStorageSize": int64(51 << 30), "size": int64(90 << 30)})
	s.figures("shop.cart", driver.M{"count": 20_000, "wiredTiger": driver.M{"block-manager": driver.M{"file bytes available for reuse": 4096},
		"cursor": driver.M{"insert calls": 20_000, "update calls": 300_000, "modify calls": 1_000_000, "remove calls": 20_000}}})
	s.script["listIndexes log.session"] = func(driver.M, driver.M) driver.M {
		return cursor("log.session", driver.D{{Key: "v", Value: 2}, {Key: "key", Value: driver.D{{Key: "_id", Value: 1}}}, {Key: "name", Value: "_id_"}},
			driver.D{{Key: "v", Value: 2}, {Key: "key", Value: driver.D{{Key: "at", Value: 1}}}, {Key: "name", Value: "at_1"}, {Key: "expireAfterSeconds", Value: 600}})
	}
	s.insert("log.session", driver.D{{Key: "_id", Value: idAt(0, 201)}, {Key: "at", Value: now.Add(-3 * time.Hour)}})
	s.insert("log.event", driver.D{{Key: "_id", Value: 3}, {Key: "time", Value: "2026-02-28"}}, driver.D{{Key: "_id", Value: 4}, {Key: "time", Value: nil}},
		driver.D{{Key: "_id", Value: 5}}, driver.D{{Key: "_id", Value: 6}, {Key: "time", Value: driver.A{now}}}, driver.D{{Key: "_id", Value: 7}, {Key: "time", Value: now.UnixMilli()}})
	s.figures("shop.item", driver.M{"count": 5_000_000})
	s.figures("shop.tags", driver.M{"size": int64(1 << 30), "totalIndexSize": int64(3 << 30), "indexSizes": driver.M{"_id_": int64(1 << 30), "flag_1": int64(2 << 30)}})
	s.index("shop.tags", "flag")
	s.script["aggregate shop.tags"] = func(cmd, reply driver.M) driver.M {
		if stageOf(cmd) != "$indexStats" {
			return reply
		}
		return cursor("shop.tags", driver.D{{Key: "name", Value: "flag_1"}, {Key: "accesses", Value: driver.D{{Key: "ops", Value: int64(0)}}}})
	}
	s.figures("log.big", driver.M{"count": 50_000_000})
	s.script["aggregate admin.$currentOp"] = func(driver.M, driver.M) driver.M {
		return cursor("admin.$cmd.aggregate",
			driver.D{{Key: "desc", Value: "conn1"}, {Key: "client", Value: "10.0.0.9:5"}, {Key: "active", Value: true}, {Key: "opid", Value: 8812}, {Key: "op", Value: "remove"}, {Key: "ns", Value: "log.big"},
				{Key: "command", Value: driver.D{{Key: "q", Value: driver.D{{Key: "flag", Value: 1}}}, {Key: "limit", Value: 0}}}, {Key: "planSummary", Value: "COLLSCAN"}, {Key: "secs_running", Value: 7200}},
			driver.D{{Key: "desc", Value: "conn2"}, {Key: "client", Value: "10.0.0.9:6"}, {Key: "active", Value: true}, {Key: "opid", Value: 8813}, {Key: "op", Value: "update"}, {Key: "ns", Value: "log.big"},
				{Key: "command", Value: driver.D{{Key: "q", Value: driver.D{{Key: "_id", Value: 1}}}, {Key: "multi", Value: false}}}, {Key: "planSummary", Value: "IDHACK"}, {Key: "secs_running", Value: 2}})
	}
	s.oplog(1<<30, 5*time.Minute)

	r := gathered(t, s)
	want := []string{
		"churn shop.cart", "fragile-majority rs1", "fragmented shop.holes", "indexes-larger shop.tags", "member-behind b:27017", "no-time shop.item",
		"oplog-short rs1", "scan-running log.big", "time-types log.event", "ttl-behind log.session",
	}
	got := slices.Compact(named(r)) // the operation runs on both members that hold data
	if !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(r.Survey.Missing) > 0 {
		t.Errorf("missing: %q", r.Survey.Missing)
	}
	for about, texts := range map[string][]string{
		"shop.holes":  {"51.0 GiB of 85.0 GiB", `compact: "holes"`},
		"shop.cart":   {"1,320,000 updates and deletes", "66.0 times a day", `renameCollection: "shop.cart", to: "cart.cart"`},
		"log.session": {"at_1", "2026-03-01T09:00:00Z", "2.8 hours overdue", "1,440 passes", "oxbow purge plan --uri mongodb://a,b --ns log.session --time-field at --before 600s"},
		"log.event":   {"date (2)", "string (1)", "null (1)", "missing (1)", "array (1)", "milliseconds (1)", "$toDate"},
		"shop.item":   {"5,000,000", "int (2)"},
		"shop.tags":   {"3.0 GiB of indexes on 1.0 GiB", "flag_1 was not used", `dropIndexes: "tags", index: "flag_1"`},
		"log.big":     {"remove {flag: ?}", "2.0 hours", "50,000,000", "ops kill --uri mongodb://a,b --opid 8812", `{key: {"flag": 1}, name: "flag_1"}`},
		"rs1":         {""},
		"b:27017":     {"10m0s behind"},
	} {
		for _, f := range r.Findings {
			text := f.Evidence + "\n" + strings.Join(f.Mend, "\n")
			for _, want := range texts {
				if f.About == about && !strings.Contains(text, want) {
					t.Errorf("%s of %s does not say %q:\n%s", f.ID, about, want, text)
				}
			}
		}
	}
	for _, asked := range s.asked {
		if strings.HasPrefix(asked, "a:27017 ") && !slices.Contains([]string{"serverStatus", "dbStats", "top", "aggregate"}, strings.TrimPrefix(asked, "a:27017 ")) {
			t.Errorf("the primary was asked: %s", asked)
		}
	}
	shown(t, r)
}

// TestSharded: of a sharded cluster the routers tell of collections, and each member of a shard of itself.
func TestSharded(t *testing.T) {
	s := newScripted(t, append(replicaSet(time.Second, deployment.Secondary), deployment.Member{Host: "router:27017", State: deployment.Router})...)
	withData(s)
	r := gathered(t, s)
	if len(r.Findings) > 0 || len(r.Survey.Collections) != 7 || len(r.Survey.Servers) != 3 || len(r.Survey.Oplogs) != 1 {
		t.Errorf("found %+v on %d collections, %d servers, %d oplogs", r.Findings, len(r.Survey.Collections), len(r.Survey.Servers), len(r.Survey.Oplogs))
	}
	for _, asked := range s.asked {
		if strings.HasSuffix(asked, " listCollections") && asked != "whole listCollections" || strings.HasPrefix(asked, "router") {
			t.Errorf("asked %s", asked)
		}
	}
}

// TestTwoLooks: what changes between two looks is told.
func TestTwoLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted(t, replicaSet(time.Second, deployment.Secondary)...)
		withData(s)
		looks := map[string]int{}
		s.figures("log.big", driver.M{"count": 5_000_000})
		s.script["count log.big"] = func(driver.M, driver.M) driver.M { return driver.M{"n": 5_000_070, "ok": 1} }
		status := s.script["serverStatus"]
		s.script["serverStatus"] = func(cmd, reply driver.M) driver.M {
			looks["status"]++
			doc := status(cmd, reply)
			doc["metrics"] = driver.M{"queryExecutor": driver.M{"collectionScans": driver.M{"nonTailable": 100 * ((looks["status"] - 1) / 3)}}}
			return doc
		}
		found, err := Gather(t.Context(), s, Options{Between: 7 * time.Second, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		r := &Report{Survey: found, Findings: Find(found, DefaultThresholds, "")}
		if got := named(r); !slices.Equal(got, []string{"scans a:27017", "scans b:27017", "scans c:27017"}) {
			t.Errorf("found %q", got)
		}
		var text bytes.Buffer
		if err := r.Print(&text); err != nil || !strings.Contains(text.String(), "+10.0 a second") || !strings.Contains(text.String(), "14.3") {
			t.Errorf("%v\n%s", err, text.String())
		}
	})
}

// shown checks that a report is whole in each of its forms.
func shown(t *testing.T, r *Report) {
	t.Helper()
	var page, text bytes.Buffer
	if err := r.Page(&page); err != nil {
		t.Fatal(err)
	}
	if err := r.Print(&text); err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		for name, out := range map[string]string{"page": page.String(), "text": text.String(), "JSON": string(doc)} {
			if !strings.Contains(out, f.ID) || !strings.Contains(out, f.About) {
				t.Errorf("the %s has not %s of %s", name, f.ID, f.About)
			}
		}
	}
	if !strings.Contains(text.String(), notReported) || !strings.Contains(string(doc), `"diskBytes":null`) || strings.Contains(string(doc), `"diskBytes":0`) {
		t.Error("what is not reported shows as something else")
	}
	for _, outside := range []string{"http://", "https://", "<script", "src="} {
		if strings.Contains(page.String(), outside) {
			t.Errorf("the page has %s", outside)
		}
	}
}
