package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/mongo/address"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// modes are the read preferences (https://www.mongodb.com/docs/manual/core/read-preference/#read-preference-modes).
var modes = [...]string{"primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"}

// selection remembers what each mode selects from a description of the deployment, so that a command costs no look at all servers.
type selection struct{ last atomic.Pointer[selected] }

// selected is what the modes select from one description. It is never changed.
type selected struct {
	from    description.Topology
	servers [len(modes)][]host
}

// host is one of the deployment's servers, with the line of the commands that want a connection to it.
type host struct {
	*topology.SelectedServer
	line *line
}

// is reports whether a description is the one that was selected from: the driver makes a new list of servers for every change.
func (s *selected) is(d *description.Topology) bool {
	return len(s.from.Servers) == len(d.Servers) && &s.from.Servers[0] == &d.Servers[0] && s.from.Kind == d.Kind
}

// atOnce returns a server for a choice, if one is there and it takes no more than a mode to find it.
func (b *Backend) atOnce(c choice) (host, bool) {
	mode := slices.Index(modes[:], c.mode)
	if c.holder != "" || c.tags != nil || c.staleness != 0 || mode < 0 {
		return host{}, false
	}
	d := b.topology.Description()
	if len(d.Servers) == 0 || d.CompatibilityErr != nil {
		return host{}, false
	}
	s := b.selection.last.Load()
	if s == nil || !s.is(&d) {
		s = b.selectFrom(d)
		b.selection.last.Store(s)
	}
	return lessBusy(s.servers[mode])
}

func (b *Backend) selectFrom(d description.Topology) *selected {
	s := &selected{from: d}
	known := slices.DeleteFunc(slices.Clone(d.Servers), func(s description.Server) bool { return s.Kind == description.Unknown })
	for i, mode := range modes {
		suitable, err := choice{mode: mode, window: b.window}.SelectServer(d, known)
		if err != nil {
			continue
		}
		for _, one := range suitable {
			if found, err := b.topology.FindServer(one); err == nil && found != nil {
				s.servers[i] = append(s.servers[i], host{found, b.lineTo(one.Addr)})
			}
		}
	}
	return s
}

// lessBusy picks the less busy of two servers, as drivers do
// (https://github.com/mongodb/specifications/blob/master/source/server-selection/server-selection.md).
func lessBusy(servers []host) (host, bool) {
	switch len(servers) {
	case 0:
		return host{}, false
	case 1:
		return servers[0], true
	}
	i := rand.IntN(len(servers))
	j := rand.IntN(len(servers) - 1)
	if j >= i {
		j++
	}
	if servers[j].line.busy() < servers[i].line.busy() {
		return servers[j], true
	}
	return servers[i], true
}

// selectServer gives a server that the command may go to. It waits for one, for the URI's serverSelectionTimeoutMS at most.
func (b *Backend) selectServer(ctx context.Context, c choice) (host, error) {
	if s, ok := b.atOnce(c); ok {
		return s, nil
	}
	ctx, cancel := context.WithTimeout(ctx, b.topology.GetServerSelectionTimeout())
	defer cancel()
	b.selecting.Add(1)
	defer b.selecting.Add(-1)
	found, err := b.topology.SelectServer(ctx, c)
	if err != nil {
		return host{}, fmt.Errorf("%w: %w", errNoServer, err)
	}
	s, ok := found.(*topology.SelectedServer)
	if !ok {
		return host{}, fmt.Errorf("select a server: the driver gives a %T", found)
	}
	return host{s, b.lineTo(s.Server.Description().Addr)}, nil
}

// errNoServer marks the failure to find a server that a command may go to.
var errNoServer = errors.New("select a server")

// primary is the choice of a command that says nothing of where it is to go.
func (b *Backend) primary() choice { return choice{mode: "primary", window: b.window} }

// hasPrimary reports whether the deployment is known to have a server for commands that say nothing of where they are to go.
func (b *Backend) hasPrimary() bool {
	_, has := b.atOnce(b.primary())
	return has
}

// lineTo returns the line of a server. A deployment has few, so none is forgotten.
func (b *Backend) lineTo(a address.Address) *line {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.mu.lines[a]
	if l == nil {
		l = newLine(b.places, b.patience)
		b.mu.lines[a] = l
	}
	return l
}
