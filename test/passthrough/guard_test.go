package passthrough

import (
	"context"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"oxbow"
)

// TestGuardSends: a read that no index serves goes to the member that the guard names, unless its client names one or begins with a transaction; others and
// what an index serves go as ever.
func TestGuardSends(t *testing.T) {
	stage := "COLLSCAN"
	m := newMember(t, map[string]func(bson.M) (bson.D, error){
		"find": found,
		"count": func(bson.M) (bson.D, error) {
			return bson.D{{Key: "n", Value: 5_000_000}}, nil
		},
		"explain": func(bson.M) (bson.D, error) {
			return bson.D{{Key: "queryPlanner", Value: bson.D{{Key: "winningPlan", Value: bson.D{{Key: "stage", Value: stage}}}}}}, nil
		},
	})
	g, err := oxbow.Open(t.Context(), oxbow.Options{Listen: "127.0.0.1:0", Config: []byte("backends: {local: {embedded: " + t.TempDir() + "}, one: {uri: \"" + m.uri +
		"\"}}\ndatabases: {one: one, \"*\": local}\nguard: {find: send, to: {mode: secondary, tags: [{use: reports}]}}\n")})
	must(t, "open", err)
	t.Cleanup(func() { must(t, "close", g.Close(context.Background())) })
	client, err := mongo.Connect(options.Client().ApplyURI(g.URI()).SetServerMonitoringMode(options.ServerMonitoringModePoll))
	must(t, "connect", err)
	defer client.Disconnect(context.Background())
	find := func(filter bson.D, o ...options.Lister[options.CollectionOptions]) string {
		m.seen()
		must(t, "find", client.Database("one").Collection("c", o...).FindOne(t.Context(), filter).Err())
		lines := strings.Split(m.seen("$readPreference"), "\n")
		return lines[len(lines)-1]
	}
	if got := find(bson.D{{Key: "a", Value: 1}}); !strings.Contains(got, "find") || !strings.Contains(got, "secondary") || !strings.Contains(got, "reports") {
		t.Errorf("a scan was sent as %s", got)
	}
	nearest := options.Collection().SetReadPreference(readpref.Nearest())
	if got := find(bson.D{{Key: "a", Value: 1}}, nearest); !strings.Contains(got, "nearest") {
		t.Errorf("a scan with a read preference of its own was sent as %s", got)
	}
	stage = "IXSCAN"
	if got := find(bson.D{{Key: "b", Value: 1}}); got != "find" {
		t.Errorf("what an index serves was sent as %s", got)
	}
}
