package ways

import (
	"bytes"
	"encoding/xml"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

// some returns a figure that is reported.
func some[T any](v T) *T { return &v }

// fixedResult is a comparison with one run of each sort: one that finished and counts, one on a server that reports everything and was stopped, one refused.
func fixedResult() *Result {
	r := &Result{
		Server: "7.0.14", Started: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Documents: 20_000_000, Old: 10_000_000, Size: 200, Inserts: 7000, Updates: 5000,
	}
	capped := fit(Memory{Bytes: 320 << 20, By: "a control group, page cache included", Group: true}, 6_000_000_000, 2_000_000_000)
	drop := Run{
		Way: "drop", About: "drops the days that are over, one at a time", Idle: Phase{Seconds: 30, Calls: 5000, P50: 4000, P99: 20_000, Held: 1},
		During: Phase{Seconds: 10, Calls: 1700, P50: 4100, P99: 21_000, Held: 1}, Took: .12, Old: r.Old, Gone: r.Old, Came: 840,
		DiskBefore: some[int64](2_000_000_000), DiskAfter: some[int64](1_010_000_000), Fit: capped,
	}
	for i := range 40 {
		s := Sample{At: float64(i) - 29.5, P99: some(int64(20_000 + i%3*500)), Backlog: r.Old, Disk: some[int64](2_000_000_000)}
		if s.At > 0 {
			s.Gone, s.Backlog, s.Disk = r.Old, int64(7000*s.At), some[int64](1_000_000_000)
		}
		drop.Samples = append(drop.Samples, s)
	}
	drop.Samples[30].P99 = some[int64](43_000)
	ranges := Run{
		Way: "ranges", About: "four workers", Stopped: "its limit of 5m0s", Idle: Phase{Seconds: 30, Calls: 5000, P50: 4000, P99: 20_000, Held: .9},
		During: Phase{Seconds: 300, Calls: 50_000, P50: 4500, P99: 24_000, Held: .97}, Took: 300, Old: r.Old, Gone: 6_000_000, Came: 2_100_000,
		DiskBefore: some[int64](2_000_000_000), DiskAfter: some[int64](2_600_000_000), Oplog: some[int64](900_000_000), Lag: some(1.5), Unmatched: 3,
		Fit: fit(Memory{Bytes: 16 << 30, By: "hostInfo"}, 6_000_000_000, 2_000_000_000),
	}
	for i := range 340 {
		s := Sample{At: float64(i) - 29.5, P99: some(int64(20_000 + i*10)), Backlog: r.Old, Disk: some(int64(2_000_000_000 + i*2_000_000)), Lag: some(float64(i%4) / 2), Oplog: some(int64(i) * 3_000_000)}
		if s.At > 0 {
			s.Gone = int64(min(s.At, 300) * 20_000)
			s.Backlog -= s.Gone - int64(7000*s.At)
		}
		ranges.Samples = append(ranges.Samples, s)
	}
	ranges.Samples[100].P99 = nil
	r.Runs = []Run{drop, ranges, {Way: "ttl", About: "a TTL index", Refused: "the server takes no TTL index", Old: r.Old}}
	return r
}

// golden holds a text against a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not as it was (-update writes it anew):\n%s", file, got)
	}
}

func TestPrint(t *testing.T) {
	var b bytes.Buffer
	if err := fixedResult().Print(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "result.txt", b.Bytes())
}

// TestPage checks that the page is whole, needs no other file, and draws what is there.
func TestPage(t *testing.T) {
	r := fixedResult()
	r.Runs[0].About = "<script>alert(1)</script>"
	var b bytes.Buffer
	if err := r.Page(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, never := range []string{"http", "src=", "href=", "<script>", "NaN", "+Inf"} {
		if strings.Contains(text, never) {
			t.Errorf("the page has %q", never)
		}
	}
	for _, svg := range strings.SplitAfter(text, "</svg>") {
		from := strings.Index(svg, "<svg")
		if from < 0 {
			continue
		}
		d := xml.NewDecoder(strings.NewReader(svg[from:]))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%v in %s", err, svg[from:])
			}
		}
	}
	// Two runs of six figures, of which the first server reports four.
	if charts, unknown := strings.Count(text, "<svg"), strings.Count(text, "none: not reported"); charts != 10 || unknown != 2 {
		t.Errorf("%d charts and %d that are not reported, want 10 and 2", charts, unknown)
	}
}

func TestFit(t *testing.T) {
	for _, test := range []struct {
		memory     Memory
		data, disk int64
		want       string
	}{
		{Memory{Bytes: 100, By: "x"}, 2000, 500, ""},
		{Memory{Bytes: 100, By: "x"}, 2000, 499, "less than 5 times"},
		{Memory{Bytes: 100, By: "x"}, 2000, 99, "fitted into memory"},
		{Memory{By: "nobody tells"}, 2000, 99_999, "nobody tells"},
	} {
		if got := fit(test.memory, test.data, test.disk).Why; (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%+v: %q, want %q", test, got, test.want)
		}
	}
}

func TestWrong(t *testing.T) {
	for _, test := range []struct {
		of   Run
		want string
	}{
		{Run{}, ""},
		{Run{Left: 2}, "2 old documents"},
		{Run{Missing: 3}, "3 documents that had to stay"},
		{Run{Unmatched: 4}, "4 updates"},
		{Run{Missing: -5}, "5 documents more"},
		{Run{Missing: -5, Failed: 10}, ""}, // an insert that failed may have stored something
	} {
		if got := test.of.Wrong(); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%+v: %q, want %q", test.of, got, test.want)
		}
	}
}

func TestSlopes(t *testing.T) {
	r := Run{Took: 10, Gone: 30_000, Came: 70_000, Idle: Phase{P99: 20}, During: Phase{P99: 30}}
	if r.Rate() != 3000 || r.Slope() != 4000 || r.KeptUp() || r.Ratio() != 1.5 {
		t.Errorf("rate %v, slope %v, kept up %v, ratio %v", r.Rate(), r.Slope(), r.KeptUp(), r.Ratio())
	}
	if none := (&Run{}); none.Rate() != 0 || none.Slope() != 0 || none.Ratio() != 0 {
		t.Error("a run of no time has a rate")
	}
}

// TestFailure: a run during which the server ended is shown for what it is, in one line.
func TestFailure(t *testing.T) {
	r := &Result{Runs: []Run{{Way: "ids", Old: 10, Gone: 4, Took: 2, Failure: "count log: EOF\nthe server ended by itself: " + strings.Repeat("x", 1000)}}}
	notes := r.notes()
	if r.Runs[0].Finished() || len(notes) == 0 || notes[0] != "ids: FAILED, and what is left was not counted: count log: EOF" {
		t.Errorf("finished %v, notes %q", r.Runs[0].Finished(), notes)
	}
	if row := r.Runs[0].row(); row[2] != "2s+" || row[len(row)-1] != "no" {
		t.Errorf("%q", row)
	}
}
