package maintain

import "time"

// meter measures a rate over the last minute.
type meter struct{ samples []sample }

type sample struct {
	at        time.Duration // monotonic
	documents int64
}

// measured is the time that a rate is of.
const measured = time.Minute

// add adds documents; those of one second are one sample.
func (m *meter) add(at time.Duration, documents int64) {
	m.forget(at)
	if n := len(m.samples); n > 0 && at-m.samples[n-1].at < time.Second {
		m.samples[n-1].documents += documents
		return
	}
	m.samples = append(m.samples, sample{at, documents})
}

// rate is in documents a second.
func (m *meter) rate(at time.Duration) float64 {
	m.forget(at)
	if len(m.samples) == 0 {
		return 0
	}
	n := int64(0)
	for _, s := range m.samples {
		n += s.documents
	}
	return float64(n) / max(time.Second, at-m.samples[0].at).Seconds()
}

func (m *meter) forget(at time.Duration) {
	for len(m.samples) > 0 && at-m.samples[0].at > measured {
		m.samples = m.samples[1:]
	}
}
