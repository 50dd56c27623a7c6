package ferret

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/deployment"
	"oxbow/internal/operation"
	"oxbow/internal/survey"
)

// TestObserve: of a server that knows little of what MongoDB reports, observe tells what there is, names what there is not, and finds what is wrong by the
// documents alone; what it runs is listed, or it is said that it does not tell.
func TestObserve(t *testing.T) {
	b := connect(t, Serve(t))
	run := func(command bson.D) {
		t.Helper()
		body, err := bson.Marshal(append(command, bson.E{Key: "$db", Value: "log"}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := backend.Ask(t.Context(), b, body); err != nil {
			t.Fatal(err)
		}
	}
	docs := bson.A{}
	for i := range 20 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "time", Value: time.Now()}})
	}
	run(bson.D{{Key: "insert", Value: "well"}, {Key: "documents", Value: docs}})
	run(bson.D{{Key: "insert", Value: "mixed"}, {Key: "documents", Value: append(docs, bson.D{{Key: "_id", Value: 20}, {Key: "time", Value: "noon"}})}})

	d := deployment.Of("ferret", b)
	defer d.Close()
	s, err := survey.Gather(t.Context(), d, survey.Options{})
	if err != nil {
		t.Fatal(err)
	}
	found := survey.Find(s, survey.DefaultThresholds, "mongodb://ferret")
	if len(found) != 1 || found[0].ID != "time-types" || found[0].About != "log.mixed" {
		t.Errorf("found %+v", found)
	}
	var text strings.Builder
	if err := (&survey.Report{Survey: s, Findings: found}).Print(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"log.well", "not reported", "time (date, string)"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, text.String())
		}
	}
	if len(s.Oplogs) > 0 || slices.ContainsFunc(s.Servers, func(s survey.Server) bool { return s.Scans.Reported || s.TTLPasses.Reported }) {
		t.Errorf("figures that this server does not report: %+v", s.Servers)
	}
	list, silent, err := operation.List(t.Context(), d)
	if err != nil || len(list) > 0 && len(silent) > 0 {
		t.Errorf("listed %v, silent %v, %v", list, silent, err)
	}
	t.Log(text.String())
}
