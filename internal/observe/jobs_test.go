package observe

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"oxbow/internal/maintain"
)

// TestOddJobs: documents of the jobs' collection that somebody else has written, with names that are no UTF-8 or the name of another job, keep no other job's figures from being read.
func TestOddJobs(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(&Jobs{Latest: func() []maintain.Status {
		return []maintain.Status{{ID: "a\xff", Kind: "\xfe"}, {ID: "one", Kind: "purge"}, {ID: "one", Kind: "kill"}}
	}})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	jobs := map[string]bool{}
	for _, f := range families {
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if l.GetName() == "job" {
					jobs[l.GetValue()] = true
				}
			}
		}
	}
	if len(jobs) != 2 || !jobs["one"] || !jobs["a\uFFFD"] {
		t.Errorf("the jobs are %v", jobs)
	}
}
