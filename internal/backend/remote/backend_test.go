package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"

	driver "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/address"
	"go.mongodb.org/mongo-driver/v2/tag"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
)

func encode(t *testing.T, doc driver.D) bson.Document {
	t.Helper()
	out, err := driver.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestNobodyListens(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	b := connect(t, "mongodb://"+address+"/?serverSelectionTimeoutMS=50")
	_, err = b.Run(context.Background(), &backend.Request{Body: encode(t, driver.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}})})
	if !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("the error is %v", err)
	}
}

func TestBadURIs(t *testing.T) {
	for _, uri := range []string{"", "localhost", "http://localhost", "mongodb://", "mongodb://a/?readPreference=never",
		"mongodb://a/?readPreference=secondary", "mongodb://a/?readConcernLevel=majority", "mongodb://a/?timeoutMS=100", "mongodb://a/?w=0",
		"mongodb://a/?w=majority&wtimeoutMS=100", "mongodb://a/?maxPoolSise=10", "mongodb://a/?loadBalanced=true"} {
		if b, err := Open(uri); err == nil {
			b.Close()
			t.Errorf("%q was taken", uri)
		}
	}
}

// replicaSet is a primary and two secondaries, one of them with a tag.
var replicaSet = []description.Server{
	{Addr: "p", Kind: description.ServerKindRSPrimary},
	{Addr: "s1", Kind: description.ServerKindRSSecondary, Tags: tag.Set{{Name: "dc", Value: "east"}}},
	{Addr: "s2", Kind: description.ServerKindRSSecondary},
	{Addr: "a", Kind: description.ServerKindRSArbiter},
}

func TestReadPreferences(t *testing.T) {
	for _, test := range []struct {
		preference driver.D
		servers    []description.Server
		want       string
	}{
		{nil, replicaSet, "p"},
		{driver.D{{Key: "mode", Value: "primary"}}, replicaSet, "p"},
		{driver.D{{Key: "mode", Value: "secondary"}}, replicaSet, "s1 s2"},
		{driver.D{{Key: "mode", Value: "nearest"}}, replicaSet, "p s1 s2"},
		{driver.D{{Key: "mode", Value: "primaryPreferred"}}, replicaSet, "p"},
		{driver.D{{Key: "mode", Value: "primaryPreferred"}}, replicaSet[1:], "s1 s2"},
		{driver.D{{Key: "mode", Value: "secondaryPreferred"}}, replicaSet, "s1 s2"},
		{driver.D{{Key: "mode", Value: "secondaryPreferred"}}, replicaSet[:1], "p"},
		{driver.D{{Key: "mode", Value: "secondary"}, {Key: "tags", Value: driver.A{driver.D{{Key: "dc", Value: "east"}}}}}, replicaSet, "s1"},
		{driver.D{{Key: "mode", Value: "secondary"}, {Key: "tags", Value: driver.A{driver.D{{Key: "dc", Value: "west"}}, driver.D{}}}}, replicaSet, "s1 s2"},
		{driver.D{{Key: "mode", Value: "secondary"}, {Key: "tags", Value: driver.A{driver.D{{Key: "dc", Value: "west"}}}}}, replicaSet, ""},
	} {
		command := driver.D{{Key: "find", Value: "c"}}
		if test.preference != nil {
			command = append(command, driver.E{Key: "$readPreference", Value: test.preference})
		}
		c, err := (&Backend{}).choose("find", bson.Value{}, encode(t, command))
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.SelectServer(description.Topology{Kind: description.TopologyKindReplicaSetWithPrimary}, test.servers)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range got {
			names = append(names, string(s.Addr))
		}
		if strings.Join(names, " ") != test.want {
			t.Errorf("%v selects %v, not %s", test.preference, names, test.want)
		}
	}
}

// TestNearest: a server that is much further away than the nearest is not asked, as with drivers.
func TestNearest(t *testing.T) {
	at := func(name string, kind description.ServerKind, away time.Duration) description.Server {
		return description.Server{Addr: address.Address(name), Kind: kind, AverageRTT: away, AverageRTTSet: true}
	}
	members := []description.Server{
		at("p", description.ServerKindRSPrimary, 30*time.Millisecond), at("s1", description.ServerKindRSSecondary, 20*time.Millisecond),
		at("s2", description.ServerKindRSSecondary, 5*time.Millisecond), at("s3", description.ServerKindRSSecondary, 21*time.Millisecond),
	}
	for mode, want := range map[string]string{"nearest": "s1 s2", "secondary": "s1 s2", "primary": "p", "primaryPreferred": "p"} {
		c, err := (&Backend{window: defaultWindow}).choose("find", bson.Value{}, encode(t, driver.D{{Key: "find", Value: "c"},
			{Key: "$readPreference", Value: driver.D{{Key: "mode", Value: mode}}}}))
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.SelectServer(description.Topology{Kind: description.TopologyKindReplicaSetWithPrimary}, members)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range got {
			names = append(names, string(s.Addr))
		}
		if strings.Join(names, " ") != want {
			t.Errorf("%s selects %v, not %s", mode, names, want)
		}
	}
}

// TestStaleness: a secondary that is further behind than the client allows is not asked; what cannot be told of a replica set is refused.
func TestStaleness(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(1000+int64(seconds), 0) }
	member := func(name string, kind description.ServerKind, wrote, seen int) description.Server {
		return description.Server{Addr: address.Address(name), Kind: kind, LastWriteTime: at(wrote), LastUpdateTime: at(seen), HeartbeatInterval: 10 * time.Second}
	}
	// The primary was seen 5 s after its last write; s1 50 s after the last write that it has, s2 200 s after.
	members := []description.Server{
		member("p", description.ServerKindRSPrimary, 300, 305),
		member("s1", description.ServerKindRSSecondary, 260, 310),
		member("s2", description.ServerKindRSSecondary, 110, 310),
	}
	selected := func(mode string, seconds any, members []description.Server) (string, error) {
		c, err := (&Backend{}).choose("find", bson.Value{}, encode(t, driver.D{{Key: "find", Value: "c"}, {Key: "$readPreference", Value: driver.D{
			{Key: "mode", Value: mode}, {Key: "maxStalenessSeconds", Value: seconds},
		}}}))
		if err != nil {
			return "", err
		}
		got, err := c.SelectServer(description.Topology{Kind: description.TopologyKindReplicaSetWithPrimary}, members)
		var names []string
		for _, s := range got {
			names = append(names, string(s.Addr))
		}
		return strings.Join(names, " "), err
	}
	for _, test := range []struct {
		mode    string
		seconds any
		members []description.Server
		want    string
	}{
		{"secondary", 120, members, "s1"},
		{"secondary", int64(205), members, "s1 s2"},
		{"secondary", 204.0, members, "s1"},
		{"nearest", 120, members, "p s1"},
		{"secondaryPreferred", 120, members[:1], "p"},
		{"secondaryPreferred", 90, []description.Server{members[0], members[2]}, "p"},
		{"secondary", 90, members[1:], "s1"}, // without a primary s1 has the latest write
		{"secondary", 160, members[1:], "s1 s2"},
		{"secondary", -1, members, "s1 s2"},
	} {
		if got, err := selected(test.mode, test.seconds, test.members); got != test.want || err != nil {
			t.Errorf("%s within %v s selects %q, %v, not %q", test.mode, test.seconds, got, err, test.want)
		}
	}
	for _, test := range []struct {
		mode    string
		seconds any
		code    mongoerr.Code
	}{
		{"secondary", 89, mongoerr.MaxStalenessOutOfRange},
		{"secondary", "90", mongoerr.TypeMismatch},
		{"secondary", -2, mongoerr.BadValue},
		{"primary", 90, mongoerr.FailedToParse},
	} {
		if got, err := selected(test.mode, test.seconds, members); !mongoerr.Is(err, test.code) {
			t.Errorf("%s within %v s selects %q, %v", test.mode, test.seconds, got, err)
		}
	}
}

// TestForgottenCursors: cursors that ended without a word about it are not remembered for ever, those in use are.
func TestForgottenCursors(t *testing.T) {
	var c cursors
	start := time.Unix(0, 0)
	reply := func(id int64) bson.Document {
		return encode(t, driver.D{{Key: "cursor", Value: driver.D{{Key: "firstBatch", Value: driver.A{}}, {Key: "id", Value: id}, {Key: "ns", Value: "d.c"}}}, {Key: "ok", Value: 1.0}})
	}
	const opened = 20 * firstSweep
	for i := range opened {
		now := start.Add(time.Duration(i) * 10 * time.Second) // 360 an hour
		c.note("find", bson.Value{}, reply(int64(i+2)), "s1", now)
		c.note("getMore", bson.Value{}, reply(1), "s2", now)
	}
	if n := len(c.mu.open); n > 2*firstSweep {
		t.Errorf("%d cursors are remembered", n)
	}
	if c.mu.open[1].server != "s2" || c.mu.open[opened+1].server != "s1" {
		t.Error("a cursor in use was forgotten")
	}
}

// TestCursorsStayWhereTheyAre: a cursor's commands go to the server that opened it, until it ends.
func TestCursorsStayWhereTheyAre(t *testing.T) {
	b, now := &Backend{}, time.Unix(0, 0)
	opened := encode(t, driver.D{{Key: "cursor", Value: driver.D{{Key: "firstBatch", Value: driver.A{}}, {Key: "id", Value: int64(7)}, {Key: "ns", Value: "d.c"}}}, {Key: "ok", Value: 1.0}})
	b.cursors.note("find", bson.Value{}, opened, "s2", now)
	getMore := encode(t, driver.D{{Key: "getMore", Value: int64(7)}, {Key: "collection", Value: "c"}})
	_, id, _ := bson.First(getMore)
	c, err := b.choose("getMore", id, getMore)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.SelectServer(description.Topology{Kind: description.TopologyKindReplicaSetWithPrimary}, replicaSet)
	if err != nil || len(got) != 1 || got[0].Addr != "s2" {
		t.Errorf("getMore goes to %v, %v", got, err)
	}
	ended := encode(t, driver.D{{Key: "cursor", Value: driver.D{{Key: "nextBatch", Value: driver.A{}}, {Key: "id", Value: int64(0)}, {Key: "ns", Value: "d.c"}}}, {Key: "ok", Value: 1.0}})
	b.cursors.note("getMore", id, ended, "s2", now)
	if len(b.cursors.mu.open) != 0 {
		t.Errorf("cursors left: %v", b.cursors.mu.open)
	}
	b.cursors.note("find", bson.Value{}, opened, "s1", now)
	killed := encode(t, driver.D{{Key: "cursorsKilled", Value: driver.A{int64(7)}}, {Key: "cursorsNotFound", Value: driver.A{}}, {Key: "ok", Value: 1.0}})
	b.cursors.note("killCursors", bson.Value{}, killed, "s1", now)
	if len(b.cursors.mu.open) != 0 {
		t.Errorf("cursors left: %v", b.cursors.mu.open)
	}
}

// TestTransactionsStayWhereTheyAre: the statements of a transaction on a sharded cluster go to the router that runs it, and so does its end, unless that
// router is gone and the end says how another can do it.
func TestTransactionsStayWhereTheyAre(t *testing.T) {
	b, now := &Backend{}, time.Unix(0, 0)
	routers := []description.Server{{Addr: "m1", Kind: description.ServerKindMongos}, {Addr: "m2", Kind: description.ServerKindMongos}}
	command := func(name string, number int64, more ...driver.E) bson.Document {
		return encode(t, append(driver.D{{Key: name, Value: "c"}, {Key: "lsid", Value: driver.D{{Key: "id", Value: 1}}}, {Key: "txnNumber", Value: number},
			{Key: "autocommit", Value: false}}, more...))
	}
	servers := func(body bson.Document, candidates []description.Server) string {
		name, arg, _ := bson.First(body)
		c, err := b.choose(name, arg, body)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.SelectServer(description.Topology{Kind: description.TopologyKindSharded}, candidates)
		if err != nil {
			t.Fatal(err)
		}
		names := ""
		for _, s := range got {
			names += string(s.Addr) + " "
		}
		return strings.TrimSpace(names)
	}
	begin := driver.E{Key: "startTransaction", Value: true}
	s, ok := statementOf("insert", command("insert", 5, begin))
	if !ok {
		t.Fatal("a statement is not taken for one")
	}
	b.transactions.note(s, "m2", now)
	token := driver.E{Key: "recoveryToken", Value: driver.D{}}
	for _, test := range []struct {
		body       bson.Document
		candidates []description.Server
		want       string
	}{
		{command("find", 5), routers, "m2"},
		{command("commitTransaction", 5, token), routers, "m2"},
		{command("commitTransaction", 5, token), routers[:1], "m1"},
		{command("commitTransaction", 5), routers[:1], ""},
		{command("find", 5, token), routers[:1], ""},
		{command("insert", 6, begin), routers, "m1 m2"},
		{command("find", 4), routers, "m1 m2"},
		{encode(t, driver.D{{Key: "find", Value: "c"}, {Key: "lsid", Value: driver.D{{Key: "id", Value: 1}}}, {Key: "txnNumber", Value: int64(5)}}), routers, "m1 m2"},
	} {
		if got := servers(test.body, test.candidates); got != test.want {
			t.Errorf("%s goes to %q, not %q", test.body, got, test.want)
		}
	}
	for i := range 20 * firstSweep {
		s.session = "other " + strconv.Itoa(i)
		b.transactions.note(s, "m1", now.Add(time.Duration(i)*10*time.Second))
	}
	if n := len(b.transactions.mu.by); n > 2*firstSweep {
		t.Errorf("transactions of %d sessions are remembered", n)
	}
}

// FuzzReply: whatever a server sends, parsing it ends without a panic, and what is accepted is a document.
func FuzzReply(f *testing.F) {
	var p pieces
	p.message(&backend.Request{Body: bson.Document{5, 0, 0, 0, 0}}, 7)
	msg := p.buf
	binary.LittleEndian.PutUint32(msg[8:], 1) // responseTo
	f.Add(msg)
	f.Add(msg[:20])
	f.Fuzz(func(t *testing.T, in []byte) {
		doc, err := parseReply(in, 1)
		if err == nil && bson.Validate(doc, replyDepth) != nil {
			t.Error("a malformed document was accepted")
		}
	})
}

// TestConnectionOutlivesItsHandshake: the time that a handshake may take is none for what comes after it.
func TestConnectionOutlivesItsHandshake(t *testing.T) {
	b := connect(t, serve(t, asTheyCame)+"?connectTimeoutMS=300")
	for i := range 2 {
		insert := encode(t, driver.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: driver.A{driver.D{{Key: "_id", Value: i}}}}, {Key: "$db", Value: "d"}})
		reply, err := b.Run(t.Context(), &backend.Request{Body: insert})
		if err != nil || backend.Check(reply) != nil {
			t.Errorf("insert %d: %v, %v", i, reply, err)
		}
		time.Sleep(400 * time.Millisecond)
	}
}
