package remote

import (
	"oxbow/internal/backend"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
)

// Servers returns what the servers said when they were looked at last. Those that don't answer keep what is known of the others; arbiters hold no
// data and don't count.
func (b *Backend) Servers() backend.Servers {
	var known backend.Servers
	for _, s := range b.topology.Description().Servers {
		if s.WireVersion == nil || s.Kind == description.Unknown || s.Kind == description.ServerKindRSArbiter {
			continue
		}
		if known.WireVersion == 0 || s.WireVersion.Max < known.WireVersion {
			known.WireVersion = s.WireVersion.Max
		}
		known.Standalone = known.Standalone || s.Kind == description.ServerKindStandalone
	}
	return known
}
