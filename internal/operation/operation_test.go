package operation

import (
	"strings"
	"testing"

	"oxbow/internal/bson/bsontest"
)

// TestParse: what servers of several releases, routers and Oxbow show of one operation means the same.
func TestParse(t *testing.T) {
	for name, test := range map[string]struct{ doc, kind, shape, internal string }{
		"a remove as a server shows it": {`{"type": "op", "desc": "conn9", "client": "10.0.0.1:1", "active": true, "opid": 7, "op": "remove", "ns": "im.msg",
			"command": {"q": {"flag": 1}, "limit": 0}, "planSummary": "COLLSCAN", "microsecs_running": 5000000}`, Remove, "{flag: ?}", ""},
		"a remove as Oxbow shows it": {`{"type": "op", "desc": "conn9", "client": "", "active": true, "opid": 7, "op": "remove", "ns": "im.msg",
			"command": {"delete": "msg", "deletes": [{"q": {"flag": 1}, "limit": 0}]}}`, Remove, "{flag: ?}", ""},
		"a remove that is not shown whole": {`{"desc": "conn9", "client": "c", "active": true, "opid": 7, "op": "remove", "ns": "im.msg",
			"command": {"delete": "msg", "$truncated": "5000 bytes"}}`, Remove, "(not shown)", ""},
		"an update": {`{"desc": "conn9", "client": "c", "active": true, "opid": 7, "op": "update", "ns": "im.msg",
			"command": {"q": {"a": {"$gt": 5}}, "u": {"$set": {"secret": 1}}, "multi": true}}`, Update, "{a: {$gt: ?}}", ""},
		"an update of an old server": {`{"desc": "conn9", "client": "c", "active": true, "opid": 7, "op": "update", "ns": "im.msg", "query": {},
			"command": {"update": "msg", "updates": [{"q": {"a": 5}, "u": {}}]}}`, Update, "{a: ?}", ""},
		"a find": {`{"desc": "conn9", "client": "c", "active": true, "opid": 7, "op": "query", "ns": "im.msg",
			"command": {"find": "msg", "filter": {"a": "b"}, "sort": {"t": -1}}}`, Find, "{a: ?} sort {t: ?}", ""},
		"a batch of a find": {`{"desc": "conn9", "client": "c", "active": true, "opid": 7, "op": "getmore", "ns": "im.msg",
			"command": {"getMore": 5, "collection": "msg"}, "cursor": {"originatingCommand": {"find": "msg", "filter": {"a": 1}}}}`, Find, "{a: ?}", ""},
		"a count": {`{"desc": "conn9", "client": "c", "active": true, "opid": 7, "op": "command", "ns": "im.msg",
			"command": {"count": "msg", "query": {"a": 1}}}`, Count, "{a: ?}", ""},
		"an aggregation": {`{"desc": "conn9", "client": "c", "active": true, "opid": 7, "op": "command", "ns": "im.msg",
			"command": {"aggregate": "msg", "pipeline": [{"$match": {"a": 1}}, {"$sort": {"b": 1}}, {"$group": {"_id": "$c"}}]}}`, Aggregate, "$match {a: ?}, $sort, $group", ""},
		"an operation of a shard's router": {`{"desc": "conn9", "client_s": "m:1", "active": true, "opid": "s1:7", "op": "remove", "ns": "im.msg",
			"command": {"q": {"flag": 1}, "limit": 0}}`, Remove, "{flag: ?}", ""},

		"an idle connection": {`{"desc": "conn9", "client": "c", "active": false, "opid": 7, "op": "none", "ns": ""}`, "none", "", "idle"},
		"a thread":           {`{"desc": "TTLMonitor", "active": true, "opid": 7, "op": "remove", "ns": "im.msg", "command": {"q": {"t": 1}, "limit": 0}}`, Remove, "{t: ?}", "the server's own"},
		"replication": {`{"desc": "conn9", "client": "c", "active": true, "opid": 7, "op": "getmore", "ns": "local.oplog.rs", "effectiveUsers": [{"user": "__system", "db": "local"}],
			"command": {"getMore": 5, "collection": "oplog.rs"}}`, "getMore", "getMore", "replication"},
		"an index build":   {`{"desc": "conn9", "client": "c", "active": true, "opid": 7, "op": "command", "ns": "im.msg", "command": {"createIndexes": "msg"}}`, "createIndexes", "createIndexes", "an index build"},
		"a driver's hello": {`{"desc": "conn9", "client": "c", "active": true, "opid": 7, "op": "command", "ns": "admin.$cmd", "command": {"hello": 1}}`, "hello", "hello", "a driver's monitor"},
		"a change stream": {`{"desc": "conn9", "client": "c", "active": true, "opid": 7, "op": "getmore", "ns": "im.msg", "command": {"getMore": 5},
			"cursor": {"originatingCommand": {"aggregate": "msg", "pipeline": [{"$changeStream": {}}]}}}`, Aggregate, "$changeStream", "waits for changes"},
		"a job of Oxbow's": {`{"desc": "conn9", "client": "c", "active": true, "opid": 7, "op": "remove", "ns": "im.msg",
			"command": {"delete": "msg", "comment": "oxbow:job:a", "deletes": [{"q": {"t": 1}, "limit": 0}]}}`, Remove, "{t: ?}", "a job of Oxbow"},
		"what is allowed": {`{"desc": "conn9", "client": "c", "active": true, "opid": 7, "op": "remove", "ns": "im.msg",
			"command": {"delete": "msg", "comment": "oxbow:allow-scan", "deletes": [{"q": {"t": 1}, "limit": 0}]}}`, Remove, "{t: ?}", ""},
		"this list": {`{"desc": "conn9", "client": "c", "active": true, "opid": 7, "op": "command", "ns": "admin.$cmd.aggregate",
			"command": {"aggregate": 1, "pipeline": [{"$currentOp": {"allUsers": true}}]}}`, Aggregate, "$currentOp", "this list"},
		"nothing at all": {`{}`, "", "", "idle"},
	} {
		o := Parse("m:1", bsontest.Doc(t, test.doc))
		if o.Kind != test.kind || o.Shape != test.shape || o.Internal != test.internal {
			t.Errorf("%s is %q %q %q, want %q %q %q", name, o.Kind, o.Shape, o.Internal, test.kind, test.shape, test.internal)
		}
		if strings.HasPrefix(name, "what is allowed") != o.AllowsScan() {
			t.Errorf("%s: allowed %v", name, o.AllowsScan())
		}
	}
	o := Parse("m:1", bsontest.Doc(t, `{"desc": "conn9", "client": "c", "active": true, "opid": "s1:7", "op": "remove", "ns": "im.msg.old", "planSummary": "IXSCAN { t: 1 }",
		"secs_running": 5, "docsExamined": 12, "appName": "nightly", "killPending": true, "effectiveUsers": [{"user": "ada", "db": "im"}], "command": {"q": {}, "limit": 0}}`))
	database, collection := o.Collection()
	if o.Number() != "s1:7" || o.Age.Seconds() != 5 || o.Scans() || o.Examined != 12 || o.App != "nightly" || o.User != "ada" || !o.Killed || database != "im" || collection != "msg.old" {
		t.Errorf("parsed %+v", o)
	}
}
