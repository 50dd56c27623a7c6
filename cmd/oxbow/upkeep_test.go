package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestRetentionStopsUntilConfirmed makes more partitions due at once than retention drops unasked, and lets it go on.
func TestRetentionStopsUntilConfirmed(t *testing.T) {
	folder := t.TempDir()
	layout := func(keep string) string {
		return gatewayConfig(folder, fmt.Sprintf("collections:\n  fla.log:\n    time: {field: time, every: day}\n    keep: %s\n    hold: 0s\n", keep))
	}
	file := writeFile(t, "oxbow.yaml", layout("36500d"))
	g := openGatewayFile(t, file)
	run := func(args ...string) string {
		t.Helper()
		stdout, _, err := oxbowCommand(t, nil, append([]string{"partitions", "--uri", g.URI()}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return stdout
	}
	wantText(t, run("confirm", "fla.log"), "retention had not stopped")
	wantText(t, run("create", "fla.log", "--from", "2001-01-01", "--to", "2001-03-20"), "78 partitions made")
	if err := os.WriteFile(file, []byte(layout("100d")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := g.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	// until waits for a text in the history, and confirms whatever stops retention again if it may.
	until := func(text string, confirm bool) string {
		t.Helper()
		for {
			out := run("history", "fla.log")
			if strings.Contains(out, text) {
				return out
			}
			if confirm && strings.Contains(out, "retention has stopped: ") {
				run("confirm", "fla.log")
			}
		}
	}
	if out := until("retention has stopped: ", false); strings.Contains(out, " hidden ") || !strings.Contains(out, "  stopped in ") {
		t.Errorf("history:\n%s", out)
	}
	if n := len(partitionRows(run("list", "fla.log"))); n < 78 {
		t.Errorf("%d partitions while retention has stopped, want at least 78", n)
	}
	wantText(t, run("confirm", "fla.log"), "confirmed: ")
	out := until("dropped fla.log_20010319", true)
	wantText(t, out, "  hidden fla.log_20010101 in ", "it ended at 2001-01-02T00:00:00Z and keep is ", "and hold is 0s")
}
