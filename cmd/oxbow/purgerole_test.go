package main

import (
	"strings"
	"testing"
)

// TestPurgeRole: the roles that docs/purge.md asks for suffice on a gateway whose clients log in, also for what the throttle looks at.
func TestPurgeRole(t *testing.T) {
	t.Parallel()
	users := "users:\n"
	for user, roles := range map[string]string{"boss@admin": "root", "cleaner@admin": "readWrite@fla, readWrite@oxbow_jobs, clusterMonitor", "planner@admin": "read@fla, clusterMonitor"} {
		var entry strings.Builder
		if err := writeUser(&entry, user, "tide"); err != nil {
			t.Fatal(err)
		}
		users += strings.ReplaceAll(entry.String(), "roles: [readWrite]", "roles: ["+roles+"]")
	}
	uri := openGateway(t, users)
	as := func(name string) string { return strings.Replace(uri, "mongodb://", "mongodb://"+name+":tide@", 1) }
	c, docs := purgedLines(t, as("boss"), true)
	stdout, stderr, err := oxbowCommand(t, nil, purgeArgs("plan", as("planner"))...)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	wantText(t, stdout, "goes now: 120 documents", "best: slices")
	if _, stderr, err = oxbowCommand(t, nil, purgeArgs("run", as("cleaner"), "--strategy", "ranges")...); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	wantLeft(t, c, docs[120:])
	_, _, err = oxbowCommand(t, nil, "jobs", "resume", "purge fla.log by ranges", "--uri", as("cleaner"))
	wantError(t, err, "purge fla.log by ranges is done, so there is nothing to resume")
}
