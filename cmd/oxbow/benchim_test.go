package main

import (
	"encoding/json"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bench/im"
)

const messageLayout = `collections:
  im.offline_msg: {hash: {field: touid, count: 4}}
`

// TestBenchIMAddsUp runs the load for a moment and holds its figures against each other and against what the server has.
func TestBenchIMAddsUp(t *testing.T) {
	for _, test := range []struct{ name, layout, whenRead string }{
		{"deleted, partitions", messageLayout, "delete"}, {"marked, partitions", messageLayout, "mark"}, {"deleted, plain", "", "delete"}, {"marked, plain", "", "mark"},
	} {
		t.Run(test.name, func(t *testing.T) {
			uri := openGateway(t, test.layout)
			stdout, stderr, err := oxbowCommand(t, nil, "bench", "im", "--uri", uri, "--messages", "300", "--logins", "100", "--users", "40",
				"--duration", "2s", "--when-read", test.whenRead, "--json")
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr)
			}
			var r im.Result
			if err := json.Unmarshal([]byte(stdout), &r); err != nil {
				t.Fatal(err)
			}
			checkBenchIM(t, &r)
			messages := database(t, uri, "im").Collection("offline_msg")
			read := r.Kinds[im.Settle].Messages
			left := r.Kinds[im.Write].Messages - read
			if test.whenRead == "mark" {
				if n := count(t, messages, bson.D{{Key: "flag", Value: 1}}); n != read {
					t.Errorf("%d messages are marked, the result has %d", n, read)
				}
			} else {
				read = 0
			}
			if n := count(t, messages, bson.D{{Key: "flag", Value: 0}}); n != left {
				t.Errorf("%d messages are not read, the result has %d", n, left)
			}
			if r.After != left+read || r.Unread != left {
				t.Errorf("%d documents and %d unread, want %d and %d", r.After, r.Unread, left+read, left)
			}
		})
	}
}

// checkBenchIM holds a result's figures against each other.
func checkBenchIM(t *testing.T, r *im.Result) {
	t.Helper()
	if len(r.Kinds) != 3 {
		t.Fatalf("%d kinds of call", len(r.Kinds))
	}
	for _, k := range r.Kinds {
		if k.Calls == 0 || k.Messages == 0 || k.Failed > 0 || k.Unmatched > 0 {
			t.Errorf("%+v: %v", k, r.Errors)
		}
		if k.P50 == 0 || k.P50 > k.P90 || k.P90 > k.P99 || k.P99 > k.P999 || k.P999 > k.Max {
			t.Errorf("%s: percentiles out of order: %+v", k.Kind, k)
		}
	}
	// 2 s at 300 and at 100 a second.
	if k := r.Kinds[im.Write]; k.Calls+k.NotBegun != 600 || k.Messages != k.Calls {
		t.Errorf("write: %+v, want 600 calls", k)
	}
	if k := r.Kinds[im.Read]; k.Calls+k.NotBegun != 200 {
		t.Errorf("read: %d calls and %d not begun, want 200", k.Calls, k.NotBegun)
	}
	if read, settled := r.Kinds[im.Read].Messages, r.Kinds[im.Settle].Messages; read != settled {
		t.Errorf("%d messages were read and %d settled", read, settled)
	}
}

func TestBenchIMPrintsTable(t *testing.T) {
	uri := openGateway(t, messageLayout)
	stdout, _, err := oxbowCommand(t, nil, "bench", "im", "--uri", uri, "--messages", "50", "--logins", "50", "--users", "5", "--duration", "1s")
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, stdout, "im.offline_msg", "asked/s", "p99.9", "write", "read", "delete", "not read yet", "in tables")
}

func TestBenchIMErrors(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--users", "0"}, "--users"},
		{[]string{"--when-read", "keep"}, "keep"},
		{[]string{"--duration", "-1s"}, "--duration"},
		{[]string{"--ns", "im"}, "namespace"},
	} {
		_, _, err := oxbowCommand(t, nil, append([]string{"bench", "im"}, test.args...)...)
		wantError(t, err, test.want)
	}
}
