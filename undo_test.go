package oxbow

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow/internal/backend/embedded"
	"oxbow/internal/deployment/scripted"
)

// TestUndoOnDelayedMembers: retention's jobs name the members that follow with a delay, where what was dropped can be read for that long; those of a deployment of
// which no member answers are left out, and keep nobody from seeing the others.
func TestUndoOnDelayedMembers(t *testing.T) {
	dir := t.TempDir()
	names := []string{"one", "two", "three"}
	var text strings.Builder
	fmt.Fprintf(&text, "backends:\n  local: {embedded: %s/local}\n", dir)
	sets := map[string]*scripted.Set{}
	for _, name := range names {
		data, err := embedded.Open(embedded.Options{Store: embedded.Store{Dir: filepath.Join(dir, name)}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { data.Close() })
		set := scripted.New(name, &scripted.Member{State: "PRIMARY", Data: data}, &scripted.Member{State: "SECONDARY", Data: data},
			&scripted.Member{State: "SECONDARY", Hidden: true, Delay: time.Hour, Lag: time.Hour, Data: data})
		fmt.Fprintf(&text, "  %s: {uri: %q}\n", name, scripted.Serve(t, set))
		sets[name] = set
	}
	text.WriteString("databases: {\"*\": local}\ncollections:\n  fla.both: {time: {field: at, every: day}, over: [one, two], keep: 7d}\n" +
		"  fla.three: {time: {field: at, every: day}, over: [three], keep: 7d}\n  fla.here: {time: {field: at, every: day}, keep: 7d}\n")
	file := filepath.Join(dir, "oxbow.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := Open(t.Context(), Options{Listen: "127.0.0.1:0", File: file, Log: slog.DiscardHandler, UpkeepEvery: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close(t.Context())
	client, err := mongo.Connect(options.Client().ApplyURI(g.URI()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Disconnect(t.Context())
	for _, collection := range []string{"both", "three", "here"} { // the first document has partitions made, also ahead
		if _, err := client.Database("fla").Collection(collection).InsertOne(t.Context(), driver.D{{Key: "at", Value: time.Now()}}); err != nil {
			t.Fatal(err)
		}
	}
	undo := func() map[string][]string {
		t.Helper()
		list, err := g.jobs.statuses(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all := map[string][]string{}
		for _, s := range list {
			all[s.Namespace] = s.Undo
		}
		return all
	}
	line := func(set string) string {
		return sets[set].Members[2].Host + " follows 1h0m0s behind: what was dropped since can be read there"
	}
	both, three := []string{line("one"), line("two")}, []string{line("three")}
	got := undo()
	for until := time.Now().Add(time.Minute); !slices.Equal(got["fla.both"], both) || !slices.Equal(got["fla.three"], three); got = undo() { // once partitions were made there
		if time.Now().After(until) {
			t.Fatalf("%q", got)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if len(got["fla.here"]) != 0 || len(got) != 3 {
		t.Errorf("%q", got)
	}
	sets["one"].Change(func() {
		for _, m := range sets["one"].Members {
			m.Silent = true
		}
	})
	got = undo()
	if !slices.Contains(got["fla.both"], line("two")) || !slices.Equal(got["fla.three"], three) {
		t.Errorf("with a deployment that does not answer: %q", got)
	}
}
