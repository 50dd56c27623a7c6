package purge

import (
	"testing"
	"time"

	"oxbow/internal/deployment"
)

// TestReader: ids are read where nobody else reads.
func TestReader(t *testing.T) {
	primary := deployment.Member{Host: "a", State: deployment.Primary}
	secondary := deployment.Member{Host: "b", State: deployment.Secondary}
	tagged := deployment.Member{Host: "c", State: deployment.Secondary, Tags: map[string]string{"use": "jobs"}}
	hidden := deployment.Member{Host: "d", State: deployment.Secondary, Hidden: true}
	both := deployment.Member{Host: "e", State: deployment.Secondary, Hidden: true, Tags: map[string]string{"use": "jobs"}}
	delayed := deployment.Member{Host: "f", State: deployment.Secondary, Hidden: true, Delay: time.Hour}
	away := deployment.Member{Host: "g", State: deployment.Secondary, Hidden: true, Why: "no answer"}
	arbiter := deployment.Member{Host: "h", State: deployment.Arbiter}
	router := deployment.Member{Host: "i", State: deployment.Router}
	for _, test := range []struct {
		members []deployment.Member
		want    string
	}{
		{[]deployment.Member{primary}, ""},
		{[]deployment.Member{primary, arbiter, delayed, away}, ""},
		{[]deployment.Member{primary, secondary, arbiter}, "b"},
		{[]deployment.Member{primary, secondary, tagged}, "c"},
		{[]deployment.Member{primary, hidden, tagged, delayed}, "d"},
		{[]deployment.Member{primary, hidden, both, secondary}, "e"},
		{[]deployment.Member{router, primary, secondary}, ""},
	} {
		got := ""
		if m := reader(test.members); m != nil {
			got = m.Host
		}
		if got != test.want {
			t.Errorf("%v: read on %q, want %q", test.members, got, test.want)
		}
	}
}
