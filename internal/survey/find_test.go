package survey

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/deployment"
	"oxbow/internal/operation"
)

// TestFind: each finding at its border, with everything else as it should be.
func TestFind(t *testing.T) {
	member := func(state deployment.State) Member {
		return Member{Host: state.String(), Set: "rs", State: state.String(), Votes: 1, state: state}
	}
	set := func(states ...deployment.State) Survey {
		var s Survey
		for i, state := range states {
			m := member(state)
			m.Host = fmt.Sprintf("m%d", i)
			s.Members = append(s.Members, m)
		}
		return s
	}
	of := func(c Collection) Survey {
		c.Namespace = "db.c"
		return Survey{Collections: []Collection{c, {Namespace: "db.other"}}}
	}
	disk := func(used int64, lastDay Figure) Survey {
		s := of(Collection{Documents: Known(1000), StorageBytes: Known(1000 << 20), LastDay: lastDay, IDTypes: []Type{{"objectId", 1}}})
		s.Servers = []Server{{Host: "h", DiskTotal: Known(100 << 30), DiskUsed: Known(used)}}
		return s
	}
	scanned := func(before, after int64, documents int64) Survey {
		s := of(Collection{Documents: Known(documents)})
		s.Between = 10 * time.Second
		s.Servers = []Server{{Host: "h", Scans: Known(before), ScansAfter: Known(after)}}
		return s
	}
	runs := func(plan string, age time.Duration) Survey {
		s := of(Collection{Documents: Known(2_000_000), IDTypes: []Type{{"objectId", 1}}})
		s.Operations = []operation.Operation{{Member: "h", Kind: operation.Remove, Namespace: "db.c", Plan: plan, Age: age}}
		return s
	}
	profiled := func(documents int64) Survey {
		s := of(Collection{Documents: Known(documents)})
		s.Profiled = []Profiled{{Namespace: "db.c", Kind: "find", Count: 3}}
		return s
	}
	oplog := func(size int64, delay float64) Survey {
		s := set(deployment.Primary, deployment.Secondary, deployment.Secondary)
		s.Members[2].DelaySeconds = delay
		s.Oplogs = []Oplog{{Set: "rs", SizeBytes: Known(size), PeakHourBytes: Known(1 << 30)}}
		return s
	}
	changed := func(seconds int64, alone bool) Survey {
		s := of(Collection{Documents: Known(20_000), Changed: Known(30_000), ChangedSeconds: Known(seconds)})
		if alone {
			s.Collections = s.Collections[:1]
		}
		return s
	}
	behind := set(deployment.Primary, deployment.Secondary, deployment.Secondary)
	behind.Members[1].BehindMillis = Known(61_000)
	almost := set(deployment.Primary, deployment.Secondary, deployment.Secondary)
	almost.Members[1].BehindMillis = Known(60_000)
	many := Survey{Count: 10_001}
	for name, test := range map[string]struct {
		survey Survey
		want   []string
	}{
		"nothing":                     {Survey{}, nil},
		"three with data":             {set(deployment.Primary, deployment.Secondary, deployment.Secondary), nil},
		"one server":                  {Survey{Members: []Member{{Host: "h", State: "primary", state: deployment.Primary}}}, nil},
		"two with data, an arbiter":   {set(deployment.Primary, deployment.Secondary, deployment.Arbiter), []string{"fragile-majority"}},
		"four with data, an arbiter":  {set(deployment.Primary, deployment.Secondary, deployment.Secondary, deployment.Secondary, deployment.Arbiter), nil},
		"a member that is down":       {set(deployment.Primary, deployment.Unreachable, deployment.Secondary), []string{"member-down"}},
		"a member that recovers":      {set(deployment.Primary, deployment.Other, deployment.Secondary), []string{"member-down"}},
		"a secondary that is behind":  {behind, []string{"member-behind"}},
		"a secondary that is not yet": {almost, nil},
		"a delay that is not covered": {oplog(3<<30, 4*3600), []string{"oplog-short"}},
		"a delay that is covered":     {oplog(5<<30, 4*3600), nil},
		"an oplog without a need":     {oplog(1<<20, 0), nil},
		"a full disk":                 {disk(95<<30, Figure{}), []string{"disk-filling"}},
		"a disk that fills":           {disk(50<<30, Known(2000)), []string{"disk-filling"}},
		"a disk that does not":        {disk(50<<30, Known(100)), nil},
		"many files":                  {many, []string{"many-files"}},
		"a scan that runs":            {runs("COLLSCAN", 2*time.Second), []string{"scan-running"}},
		"a scan that has just begun":  {runs("COLLSCAN", time.Millisecond), nil},
		"an index that is used":       {runs("IXSCAN { a: 1 }", time.Hour), nil},
		"a plan that is not reported": {runs("", time.Hour), nil},
		"a scan in the profile":       {profiled(2_000_000), []string{"scans"}},
		"a small one in the profile":  {profiled(1000), nil},
		"scans that are counted":      {scanned(100, 300, 2_000_000), []string{"scans"}},
		"scans of small collections":  {scanned(100, 300, 2000), nil},
		"few scans":                   {scanned(100, 150, 2_000_000), nil},
		"a TTL index that is behind":  {of(Collection{Expired: &Backlog{Index: "a_1", Behind: 601}}), []string{"ttl-behind"}},
		"one that is not":             {of(Collection{Expired: &Backlog{Index: "a_1", Behind: 599}}), nil},
		"times of two types":          {of(Collection{Time: &TimeField{"t", []Type{{"date", 9}, {"string", 1}}}}), []string{"time-types"}},
		"times of one type":           {of(Collection{Time: &TimeField{"t", []Type{{"date", 9}}}}), nil},
		"no time":                     {of(Collection{Documents: Known(2_000_000), Sampled: 5, IDTypes: []Type{{"int", 5}}}), []string{"no-time"}},
		"no time but in ids":          {of(Collection{Documents: Known(2_000_000), Sampled: 5, IDTypes: []Type{{"objectId", 5}}}), nil},
		"holes":                       {of(Collection{StorageBytes: Known(1 << 30), ReusableBytes: Known(256 << 20)}), []string{"fragmented"}},
		"few holes":                   {of(Collection{StorageBytes: Known(1 << 30), ReusableBytes: Known(255 << 20)}), nil},
		"holes that are small":        {of(Collection{StorageBytes: Known(200 << 20), ReusableBytes: Known(150 << 20)}), nil},
		"holes that nobody reports":   {of(Collection{StorageBytes: Known(1 << 30)}), nil},
		"churn":                       {changed(24*3600, false), []string{"churn"}},
		"churn in its own database":   {changed(24*3600, true), nil},
		"churn over a week":           {changed(7*24*3600, false), nil},
		"churn since a minute ago":    {changed(60, false), nil},
		"indexes":                     {of(Collection{DataBytes: Known(65 << 20), IndexBytes: Known(66 << 20)}), []string{"indexes-larger"}},
		"small indexes":               {of(Collection{DataBytes: Known(1 << 20), IndexBytes: Known(63 << 20)}), nil},
		"a very large one":            {of(Collection{Documents: Known(100_000_001), IDTypes: []Type{{"objectId", 1}}}), []string{"large"}},
		"a capped one":                {of(Collection{Documents: Known(200_000_000), Capped: true}), nil},
	} {
		var got []string
		for _, f := range Find(&test.survey, DefaultThresholds, "mongodb://h") {
			got = append(got, f.ID)
			if f.Evidence == "" || f.Title == "" || f.About == "" || len(f.Mend) == 0 && f.ID != "scans" && f.ID != "scan-running" {
				t.Errorf("%s: a finding without all that it needs: %+v", name, f)
			}
			if !slices.Contains(IDs, f.ID) {
				t.Errorf("%s: %s is no finding", name, f.ID)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: found %q, want %q", name, got, test.want)
		}
	}
}

func TestTimeField(t *testing.T) {
	for name, test := range map[string]struct {
		docs []string
		want string
	}{
		"a date":                {[]string{`{"_id": 1, "seen": {"$date": "2026-01-01T00:00:00Z"}}`}, "seen [{date 1}]"},
		"seconds, by the name":  {[]string{`{"_id": 1, "time": 1700000000}`, `{"_id": 2}`}, "time [{missing 1} {seconds 1}]"},
		"milliseconds":          {[]string{`{"_id": 1, "created_at": 1700000000000}`}, "created_at [{milliseconds 1}]"},
		"only called so":        {[]string{`{"_id": 1, "at": "home"}`, `{"_id": 2, "date": 7}`}, ""},
		"a date here and there": {[]string{`{"_id": 1, "d": {"$date": "2026-01-01T00:00:00Z"}}`, `{"_id": 2}`, `{"_id": 3}`}, ""},
		"the name before dates": {[]string{`{"_id": 1, "a": {"$date": "2026-01-01T00:00:00Z"}, "time": {"$date": "2026-01-01T00:00:00Z"}}`}, "time [{date 1}]"},
	} {
		var docs []bson.Document
		for _, text := range test.docs {
			docs = append(docs, bsontest.Doc(t, text))
		}
		got := ""
		if f := new(Collection).timeField(docs); f != nil {
			got = fmt.Sprintf("%s %v", f.Name, f.Types)
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestOddTimesAreCounted: the command that is proposed counts all that is not of the unit that most have, also times of another unit, which are numbers as well.
func TestOddTimesAreCounted(t *testing.T) {
	for main, want := range map[string]string{
		"seconds":      `countDocuments({"t": {$not: {$gte: 100000000, $lt: 100000000000}}}`,
		"milliseconds": `countDocuments({"t": {$not: {$gte: 100000000000, $lt: 100000000000000}}}`,
		"date":         `countDocuments({"t": {$not: {$type: "date"}}}`,
	} {
		s := Survey{At: time.Now(), Collections: []Collection{{Namespace: "db.c", Time: &TimeField{"t", []Type{{main, 9}, {"missing", 1}}}}}}
		list := Find(&s, DefaultThresholds, "mongodb://h")
		if len(list) != 1 || !strings.Contains(list[0].Mend[0], want) {
			t.Errorf("%s: %+v, want %s", main, list, want)
		}
	}
}

// TestCommandsOfOddNames: whoever may name a collection or a field puts nothing into the commands that an operator pastes.
func TestCommandsOfOddNames(t *testing.T) {
	const name, field = `db.c; touch x $(touch y)`, `a"}); quit(); ("`
	s := Survey{At: time.Now(), Collections: []Collection{{
		Namespace: name, Documents: Known(200_000_000), Sampled: 10, Time: &TimeField{Name: field, Types: []Type{{"date", 9}, {"string", 1}}},
		Expired: &Backlog{Field: field, Behind: 1e6},
	}}}
	list := Find(&s, DefaultThresholds, "mongodb://h/?a=b&c=d")
	wants := map[string]string{
		"ttl-behind": `oxbow purge plan --uri 'mongodb://h/?a=b&c=d' --ns 'db.c; touch x $(touch y)' --time-field 'a"}); quit(); ("' --before 0s`,
		"time-types": `{$set: {"a\"}); quit(); (\"": {$toDate: "$a\"}); quit(); (\""}}}`,
		"large":      `collections: {"db.c; touch x $(touch y)": {time: {field: "a\"}); quit(); (\"", unit: date`,
	}
	for _, f := range list {
		if want := wants[f.ID]; want != "" && !strings.Contains(strings.Join(f.Mend, "\n"), want) {
			t.Errorf("%s: %q lacks %s", f.ID, f.Mend, want)
		}
		delete(wants, f.ID)
	}
	if len(wants) > 0 {
		t.Errorf("not found: %v", wants)
	}
}
