package backend

import (
	"testing"

	"oxbow/internal/bson/bsontest"
)

func TestScansCollection(t *testing.T) {
	for explained, want := range map[string]bool{
		`{"queryPlanner": {"winningPlan": {"stage": "COLLSCAN"}}}`:                                                                          true,
		`{"queryPlanner": {"winningPlan": {"stage": "DELETE", "inputStage": {"stage": "COLLSCAN"}}}}`:                                       true,
		`{"queryPlanner": {"winningPlan": {"queryPlan": {"stage": "FETCH", "inputStage": {"stage": "IXSCAN"}}}}}`:                           false,
		`{"queryPlanner": {"winningPlan": {"stage": "IXSCAN"}, "rejectedPlans": [{"stage": "COLLSCAN"}]}}`:                                  false,
		`{"queryPlanner": {"parsedQuery": {"stage": "COLLSCAN"}, "winningPlan": {"stage": "IDHACK"}}}`:                                      false,
		`{"queryPlanner": {"winningPlan": {"stage": "OR", "inputStages": [{"stage": "IXSCAN"}, {"stage": "COLLSCAN"}]}}}`:                   true,
		`{"stages": [{"$cursor": {"queryPlanner": {"winningPlan": {"stage": "COLLSCAN"}}}}, {"$group": {"stage": 1}}]}`:                     true,
		`{"queryPlanner": {"winningPlan": {"stage": "SHARD_MERGE", "shards": [{"shardName": "a", "winningPlan": {"stage": "COLLSCAN"}}]}}}`: true,
		`{"shards": {"a": {"stages": [{"$cursor": {"queryPlanner": {"winningPlan": {"stage": "COLLSCAN"}}}}]}}}`:                            true,
		`{"shards": {"a": {"queryPlanner": {"winningPlan": {"stage": "IXSCAN"}}}}}`:                                                         false,
		`{"ok": 1}`: false,
	} {
		if got := ScansCollection(bsontest.Doc(t, explained)); got != want {
			t.Errorf("%s: %v", explained, got)
		}
	}
	if !PlansNothing(bsontest.Doc(t, `{"queryPlanner": {"winningPlan": {"stage": "DELETE", "inputStage": {"stage": "EOF"}}}}`)) {
		t.Error("a plan over nothing was not seen")
	}
}
