package observe

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"oxbow/internal/maintain"
)

var (
	jobStateDesc     = prometheus.NewDesc("oxbow_job_state", "1 for the state that a job is in.", []string{"job", "kind", "state"}, nil)
	jobDocumentsDesc = prometheus.NewDesc("oxbow_job_documents", "Documents that a job's pass has taken away or written.", []string{"job"}, nil)
	jobRateDesc      = prometheus.NewDesc("oxbow_job_documents_per_second", "Documents a second that a job takes away or writes, over the last minute.", []string{"job"}, nil)
	jobRemainingDesc = prometheus.NewDesc("oxbow_job_remaining_documents", "Documents that are left for a job's pass, about; not there where that is not known.", []string{"job"}, nil)
	jobFailuresDesc  = prometheus.NewDesc("oxbow_job_failures", "Failures of a job's step in a row.", []string{"job"}, nil)
	jobLastDesc      = prometheus.NewDesc("oxbow_job_last_end_timestamp_seconds", "When a job's last stretch of work ended.", []string{"job"}, nil)
	jobAlertDesc     = prometheus.NewDesc("oxbow_job_alert", "1 while somebody should look at a job.", []string{"job"}, nil)
	jobsDescs        = []*prometheus.Desc{jobStateDesc, jobDocumentsDesc, jobRateDesc, jobRemainingDesc, jobFailuresDesc, jobLastDesc, jobAlertDesc}
)

// maxJobs is how many jobs have series.
const maxJobs = 200

// Jobs reads a gateway's jobs when it is asked.
type Jobs struct {
	Latest func() []maintain.Status
}

// Describe implements prometheus.Collector.
func (j *Jobs) Describe(out chan<- *prometheus.Desc) {
	for _, d := range jobsDescs {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (j *Jobs) Collect(out chan<- prometheus.Metric) {
	list := j.Latest()
	seen := map[string]bool{}
	for _, s := range list[:min(len(list), maxJobs)] {
		name, kind := label(s.ID), label(s.Kind)
		if seen[name] { // a second series of one name would be an error at each reading
			continue
		}
		seen[name] = true
		gauge := func(d *prometheus.Desc, value float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{name}, labels...)...)
		}
		for _, state := range maintain.States {
			is := 0.0
			if state == s.State {
				is = 1
			}
			gauge(jobStateDesc, is, kind, string(state))
		}
		gauge(jobDocumentsDesc, float64(s.Documents))
		gauge(jobRateDesc, s.Rate)
		gauge(jobFailuresDesc, float64(s.Failures))
		if s.Remaining >= 0 {
			gauge(jobRemainingDesc, float64(s.Remaining))
		}
		if s.Last != nil {
			gauge(jobLastDesc, float64(s.Last.End.UnixMilli())/1000)
		}
		alert := 0.0
		if s.Alert != "" || s.State == maintain.Failed {
			alert = 1
		}
		gauge(jobAlertDesc, alert)
	}
}

// label is a text as a label can have it: UTF-8.
func label(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
