package throttle

import (
	"log/slog"

	"oxbow/internal/backend"
	"oxbow/internal/deployment"
)

// On is the deployment that a Throttle looks at, and how.
type On struct {
	Deployment *deployment.Deployment
	Settings   Settings
	// Foreground tells how long the application's commands take; nil: they do not go through this process.
	Foreground Source
	// Canary is the collection in which a small document is written and read; the zero value: none.
	Canary backend.Namespace
	// StatsDatabase is the database whose dbStats tells of the disk; "": admin.
	StatsDatabase string
	Log           *slog.Logger
}

// Of returns a Throttle with all probes on a deployment, for Run.
func Of(on On) *Throttle {
	if on.StatsDatabase == "" {
		on.StatsDatabase = "admin"
	}
	settings, traffic := NewLive(on.Settings), &traffic{}
	v := newView(on.Deployment, settings)
	return New(Options{
		Settings: settings, Log: on.Log, traffic: traffic,
		Probes: []Probe{
			newPrimaryProbe(v), majorityProbe{v}, newLagProbe(v), newOplogProbe(v),
			&latencyProbe{source: on.Foreground, settings: settings, traffic: traffic},
			&canaryProbe{backend: on.Deployment.Whole(), collection: on.Canary, settings: settings, traffic: traffic, window: NewWindow()},
			queueProbe{v}, ticketsProbe{v}, dirtyProbe{v}, usedProbe{v}, diskProbe{v, on.StatsDatabase}, newCPUProbe(v),
		},
	})
}
