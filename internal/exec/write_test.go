package exec

import (
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/plan"
)

// answering is a deployment that gives every write the same reply, which no embedded engine gives.
type answering struct{ reply bson.Document }

func (a answering) Run(context.Context, *backend.Request) (bson.Document, error) { return a.reply, nil }
func (answering) Abilities() backend.Abilities                                   { return backend.Abilities{} }
func (answering) Close() error                                                   { return nil }

// TestConcernErrorOfParts: a write concern that failed on some partitions is told, whichever way a statement reached them.
func TestConcernErrorOfParts(t *testing.T) {
	concern := bsoncore.NewDocumentBuilder().AppendInt32("code", 64).AppendString("errmsg", "waiting for replication timed out").Build()
	reply := func(b *bsoncore.DocumentBuilder) bson.Document {
		return bson.Document(b.AppendInt32("n", 1).AppendInt32("nModified", 1).AppendDouble("ok", 1).Build())
	}
	e := &Executor{Backends: map[string]backend.Backend{
		"slow": answering{reply(bsoncore.NewDocumentBuilder().AppendDocument("writeConcernError", concern))},
		"fast": answering{reply(bsoncore.NewDocumentBuilder())},
	}}
	on := func(name string) plan.Target {
		return plan.Target{Backend: name, Namespace: backend.Namespace{Database: "d", Collection: "c"}}
	}
	together := func(name string, index int32) plan.Step {
		return plan.Together{Run: plan.Run{
			Backend: name, Namespaces: []backend.Namespace{on(name).Namespace}, Index: []int32{index}, Statements: []bson.Document{{5, 0, 0, 0, 0}},
		}}
	}
	each := plan.Each{Statement: bson.Document{5, 0, 0, 0, 0}, Routed: plan.Routed{Targets: []plan.Target{on("fast"), on("slow")}}}
	for name, steps := range map[string][]plan.Step{
		"one statement on each": {each}, "statements together": {together("fast", 0), together("slow", 1)},
	} {
		r, err := e.Write(t.Context(), &plan.Write{Name: "update", Namespace: "d.c", Steps: steps}, Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r.N != 2 || r.Modified != 2 || string(r.ConcernError) != string(concern) {
			t.Errorf("%s: n %d, nModified %d, writeConcernError %s", name, r.N, r.Modified, r.ConcernError)
		}
	}
}
