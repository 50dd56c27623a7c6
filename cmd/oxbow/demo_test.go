package main

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"oxbow/internal/bench"
)

// TestDemoInLines runs the demonstration for a moment where there is no terminal.
func TestDemoInLines(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	stdout, _, err := oxbowCommand(t, nil, "demo", "--for", "2s", "--inserts", "200", "--updates", "50")
	if err != nil {
		t.Fatalf("%v\n%s", err, stdout)
	}
	wantText(t, stdout, "mongosh mongodb://127.0.0.1:", "ends after 2s", "made    demo.log_", "partitions: ", "seconds")
	if !regexp.MustCompile(`\d+s of load: [1-9]\d* documents inserted, \d+ updated, 0 failed\n`).MatchString(stdout) {
		t.Errorf("no summary in:\n%s", stdout)
	}
	left, err := filepath.Glob(filepath.Join(temporary, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// TestDemoStops ends the demonstration as ctrl-C does.
func TestDemoStops(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	root := rootCommand()
	out := &untilWritten{text: " made ", then: cancel}
	root.SetOut(out)
	root.SetArgs([]string{"demo", "--for", "0", "--inserts", "100", "--updates", "0"})
	if err := root.ExecuteContext(ctx); err != nil {
		t.Fatal(err)
	}
	wantText(t, out.all.String(), "ends with ctrl-C", "of load: ")
}

// untilWritten calls then when a text has been written to it.
type untilWritten struct {
	text string
	then func()
	all  strings.Builder
}

func (u *untilWritten) Write(b []byte) (int, error) {
	u.all.Write(b)
	if strings.Contains(u.all.String(), u.text) {
		u.then()
	}
	return len(b), nil
}

func TestDemoErrors(t *testing.T) {
	for _, args := range [][]string{{"--inserts", "0"}, {"--for", "-1s"}, {"--updates", "-1"}} {
		_, _, err := oxbowCommand(t, nil, append([]string{"demo"}, args...)...)
		wantError(t, err, "--inserts", "--for")
	}
}

// minute is the partition of a minute of an hour.
func minute(n int, state string, count int64) partition {
	start := time.Date(2001, 2, 3, 4, n, 0, 0, time.UTC)
	return partition{Name: "demo.log_" + start.Format("1504"), State: state, Start: start, End: start.Add(time.Minute), Count: count}
}

func TestChanges(t *testing.T) {
	before := demoState{partitions: []partition{minute(1, "hidden", 10), minute(2, "active", 20), minute(3, "active", 0)}}
	after := demoState{
		partitions: []partition{minute(2, "hidden", 21), minute(3, "active", 5), minute(4, "active", 0)},
		events: []bench.Event{
			{Partition: "demo.log_0401", Action: "dropped", Error: "the disk is full"},
			{Partition: "demo.log_0401", Action: "dropped", Reason: "it was hidden long ago", Micros: 2500},
			{Partition: "demo.log_0402", Action: "hidden", Reason: "it ended"},
		},
	}
	var got []string
	for _, c := range changes(before, after) {
		got = append(got, c.String())
	}
	want := []string{
		"dropped demo.log_0401, " + spanOf(1) + ", 10 documents, in 2.5 ms: it was hidden long ago",
		"hidden  demo.log_0402, " + spanOf(2) + ", 21 documents: it ended",
		"made    demo.log_0404, " + spanOf(4),
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if again := changes(after, after); len(again) > 0 {
		t.Errorf("changes of nothing: %v", again)
	}
}

func spanOf(n int) string { p := minute(n, "", 0); return p.span() }

// TestDropIsSeenWhole checks that a partition that is seen while it is dropped keeps its documents until it is gone.
func TestDropIsSeenWhole(t *testing.T) {
	before := demoState{partitions: []partition{minute(1, "hidden", 10)}}
	during := demoState{partitions: []partition{minute(1, "dropping", 0)}}
	during.follow(before)
	if n := during.partitions[0].Count; n != 10 {
		t.Errorf("%d documents while it is dropped, want 10", n)
	}
	lost := demoState{err: errors.New("no answer")}
	lost.follow(before)
	if len(changes(before, lost)) > 0 {
		t.Error("partitions that could not be listed count as dropped")
	}
}

func TestLiveView(t *testing.T) {
	g := openGateway(t, "")
	v := &liveView{demo: &demo{started: minute(3, "", 0).Start, length: 3 * time.Minute, uri: g}, ctx: t.Context(), width: 100}
	if text := v.text(); text == "" {
		t.Error("nothing is shown before the first look")
	}
	v.take(demoState{at: minute(3, "", 0).Start, partitions: []partition{minute(2, "active", 1000), minute(3, "active", 10)}})
	v.take(demoState{
		at: minute(3, "", 0).Start.Add(2 * time.Second), partitions: []partition{minute(3, "active", 50), minute(4, "active", 0)},
		events: []bench.Event{{Partition: "demo.log_0402", Action: "dropped", Reason: "it was hidden"}}, totals: bench.Totals{Inserted: 400}, p99: time.Millisecond,
	})
	text := v.text()
	wantText(t, text, "2s of 3m0s", "demo.log_0403", "ahead", "1.0 ms", "dropped demo.log_0402", "1,000 documents", "next to be dropped: demo.log_0403 in 1m58s", "mongosh "+g)
	if strings.Count(text, "█") == 0 {
		t.Error("no bar")
	}
	v.Update(tea.WindowSizeMsg{Width: 40, Height: 20})
	for line := range strings.Lines(v.text()) {
		if n := len([]rune(stripped(line))); n > 40 {
			t.Errorf("%d columns on a terminal of 40: %q", n, line)
		}
	}
	for _, key := range []tea.KeyPressMsg{{Code: 'q', Text: "q"}, {Code: 'c', Mod: tea.ModCtrl}} {
		if _, cmd := v.Update(key); cmd == nil || cmd() != (tea.QuitMsg{}) {
			t.Errorf("%s does not end it", key)
		}
	}
}

// stripped takes a line's escape sequences and its end off.
func stripped(line string) string {
	var b strings.Builder
	inside := false
	for _, r := range strings.TrimRight(line, "\n") {
		switch {
		case r == '\x1b':
			inside = true
		case !inside:
			b.WriteRune(r)
		case r == 'm':
			inside = false
		}
	}
	return b.String()
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) = %s, want %s", n, got, want)
		}
	}
}
