package observe

import "github.com/prometheus/client_golang/prometheus"

// Policies counts what policies did about operations. Labels are the names of jobs of the configuration and outcomes, of both of which there are few.
type Policies struct{ *prometheus.CounterVec }

// NewPolicies returns the counts of a gateway's policies.
func NewPolicies() *Policies {
	return &Policies{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "oxbow_policy_operations_total", Help: "Operations that a policy was about, by what became of them.",
	}, []string{"job", "outcome"})}
}

// Note counts an operation.
func (p *Policies) Note(job, outcome string) { p.WithLabelValues(job, outcome).Inc() }
