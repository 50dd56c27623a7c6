package backend

import (
	"strings"
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

func TestWalksIndex(t *testing.T) {
	for scan, want := range map[string]bool{
		`"indexBounds": {"a": ["[MinKey, MaxKey]"]}`:                    true,
		`"indexBounds": {"a": ["[MaxKey, MinKey]"]}`:                    true,
		`"indexBounds": {"a": ["[MinKey, 5)", "(5, MaxKey]"]}`:          true,
		`"indexBounds": {"a": ["[\"\", {})", "[/x/, /x/]"]}`:            true,
		`"indexBounds": {"a": ["[\"x\", \"y\")", "[/^x/, /^x/]"]}`:      false,
		`"indexBounds": {"a": ["(5, MaxKey]"]}`:                         false,
		`"indexBounds": {"a": ["[1, 1]"], "b": ["[MinKey, MaxKey]"]}`:   false,
		`"isSparse": true, "indexBounds": {"a": ["[MinKey, MaxKey]"]}`:  false,
		`"isPartial": true, "indexBounds": {"a": ["[MinKey, MaxKey]"]}`: false,
		`"indexBounds": {"startKey": {"a": 1}, "endKey": {"a": 2}}`:     false,
	} {
		for _, above := range []string{`{"queryPlanner": {"winningPlan": %}}`, `{"queryPlanner": {"winningPlan": {"stage": "FETCH", "inputStage": %}}}`} {
			explained := strings.Replace(above, "%", `{"stage": "IXSCAN", `+scan+`}`, 1)
			if got := WalksIndex(bsontest.Doc(t, explained)); got != want {
				t.Errorf("%s: %v", explained, got)
			}
		}
	}
	for _, explained := range []string{
		`{"queryPlanner": {"winningPlan": {"stage": "DISTINCT_SCAN", "indexBounds": {"a": ["[MinKey, MaxKey]"]}}}}`,
		`{"queryPlanner": {"winningPlan": {"stage": "IDHACK"}, "rejectedPlans": [{"stage": "IXSCAN", "indexBounds": {"a": ["[MinKey, MaxKey]"]}}]}}`,
	} {
		if WalksIndex(bsontest.Doc(t, explained)) {
			t.Errorf("%s: walks an index", explained)
		}
	}
}
