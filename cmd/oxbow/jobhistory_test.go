package main

import (
	"errors"
	"testing"

	driver "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oxbow/internal/mongoerr"
)

// TestHistoryOfUnknownJob: the history of a job that is not there is an error, and not empty as that of one which has done nothing yet.
func TestHistoryOfUnknownJob(t *testing.T) {
	t.Parallel()
	uri := openGateway(t, "jobs: {idle: {kind: purge, on: im.mail, with: {strategy: ids, where: '{\"_id\": 1}'}}}\ncollections: {fla.log: {time: {field: at, every: day}, keep: 7d}}\n")
	jobsUntil(t, uri, "idle", "list")
	history := func(id string) error {
		return database(t, uri, "admin").RunCommand(t.Context(), driver.D{{Key: "jobHistory", Value: id}}).Err()
	}
	for _, id := range []string{"idle", "retention:fla.log"} {
		if err := history(id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	for _, id := range []string{"idler", "retention:fla.logs"} {
		var refused mongo.ServerError
		if err := history(id); !errors.As(err, &refused) || !refused.HasErrorCode(int(mongoerr.NoSuchKey)) {
			t.Errorf("%s: %v", id, err)
		}
	}
}
