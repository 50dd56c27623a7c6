package command

import (
	"strings"

	"oxbow/internal/backend"
)

// release is a version of MongoDB and the wire version that came with it
// (https://github.com/mongodb/specifications/blob/master/source/wireversion-featurelist/wireversion-featurelist.md).
type release struct {
	wireVersion int32
	version     string
}

// releases are those that can stand behind Oxbow and are older than what it answers as, the latest first.
var releases = []release{{17, "6.0.0"}, {13, "5.0.0"}, {9, "4.4.0"}, {8, "4.2.0"}}

// servers returns what all servers behind the gateway can do, and moves the topology's version when that is not what was told before.
func (t *Table) servers() backend.Servers {
	var s backend.Servers
	if t.deps.Servers != nil {
		s = t.deps.Servers()
	}
	if s.WireVersion == 0 || s.WireVersion > maxWireVersion {
		s.WireVersion = maxWireVersion
	}
	t.topology.tell(s)
	return s
}

// version is the version of MongoDB that is answered as: the gateway's own or, where a server behind it is older, the release of its wire version.
func (t *Table) version() string {
	wire := t.servers().WireVersion
	if wire == maxWireVersion {
		return t.deps.Server.Version
	}
	for _, r := range releases {
		if r.wireVersion <= wire {
			return r.version
		}
	}
	return releases[len(releases)-1].version
}

// compatibilityVersion is "7.0" of "7.0.14".
func compatibilityVersion(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}
