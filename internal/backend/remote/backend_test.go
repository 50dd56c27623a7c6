package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"

	"oxbow/internal/backend"
	"oxbow/internal/bson"

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
	for _, uri := range []string{"", "localhost", "http://localhost", "mongodb://", "mongodb://a/?readPreference=never"} {
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
	stale := encode(t, driver.D{{Key: "find", Value: "c"}, {Key: "$readPreference", Value: driver.D{{Key: "maxStalenessSeconds", Value: 120}}}})
	if _, err := (&Backend{}).choose("find", bson.Value{}, stale); err == nil || !strings.Contains(err.Error(), "maxStalenessSeconds") {
		t.Errorf("maxStalenessSeconds gives %v", err)
	}
}

// TestCursorsStayWhereTheyAre: a cursor's commands go to the server that opened it, until it ends.
func TestCursorsStayWhereTheyAre(t *testing.T) {
	b := &Backend{cursors: map[int64]address.Address{}}
	opened := encode(t, driver.D{{Key: "cursor", Value: driver.D{{Key: "firstBatch", Value: driver.A{}}, {Key: "id", Value: int64(7)}, {Key: "ns", Value: "d.c"}}}, {Key: "ok", Value: 1.0}})
	b.noteCursor("find", bson.Value{}, opened, "s2")
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
	b.noteCursor("getMore", id, ended, "s2")
	if len(b.cursors) != 0 {
		t.Errorf("cursors left: %v", b.cursors)
	}
	b.noteCursor("find", bson.Value{}, opened, "s1")
	killed := encode(t, driver.D{{Key: "cursorsKilled", Value: driver.A{int64(7)}}, {Key: "cursorsNotFound", Value: driver.A{}}, {Key: "ok", Value: 1.0}})
	b.noteCursor("killCursors", bson.Value{}, killed, "s1")
	if len(b.cursors) != 0 {
		t.Errorf("cursors left: %v", b.cursors)
	}
}

// FuzzReply: whatever a server sends, parsing it ends without a panic, and what is accepted is a document.
func FuzzReply(f *testing.F) {
	msg, _ := appendMessage(nil, &backend.Request{Body: bson.Document{5, 0, 0, 0, 0}})
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
