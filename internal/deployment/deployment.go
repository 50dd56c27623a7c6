package deployment

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"oxbow/internal/backend"
)

// Dialer opens a connection to one server, past the choice of a server that a backend makes for a command.
type Dialer interface {
	// Dial returns a backend on the server, without waiting until it answers.
	Dial(ctx context.Context, host string) (backend.Backend, error)
	// Hosts are the servers that the backend uses, as far as it knows them.
	Hosts() []string
}

// Deployment is a deployment and its members. Safe for concurrent use.
type Deployment struct {
	name   string
	whole  backend.Backend
	dialer Dialer // nil: the backend is the only member

	mu struct {
		sync.Mutex
		closed  bool
		members map[string]backend.Backend
		configs map[string]config // by the name of the replica set
		asked   map[string]string // the host that told of a shard last, by the name of the shard
	}
}

// errNoMember is the error of a question to a host that cannot be one of the deployment's.
var errNoMember = errors.New("the deployment has no such member")

// Of returns the deployment that a backend is on. A backend that is a Dialer has members to be asked one by one; any other is its only member, which has the name.
// Close does not close the backend.
func Of(name string, whole backend.Backend) *Deployment {
	d := &Deployment{name: name, whole: whole}
	d.dialer, _ = whole.(Dialer)
	d.mu.members, d.mu.configs, d.mu.asked = map[string]backend.Backend{}, map[string]config{}, map[string]string{}
	return d
}

// Name is the name that the deployment was given.
func (d *Deployment) Name() string { return d.name }

// Whole is the backend for commands that are for the deployment as such.
func (d *Deployment) Whole() backend.Backend { return d.whole }

// On returns the backend of one member, by its Host. It is kept open, and closed with the deployment.
func (d *Deployment) On(ctx context.Context, host string) (backend.Backend, error) {
	if d.dialer == nil {
		if host != d.name {
			return nil, fmt.Errorf("%w: %s", errNoMember, host)
		}
		return d.whole, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.closed {
		return nil, fmt.Errorf("%w: the deployment is closed", backend.ErrUnavailable)
	}
	if b := d.mu.members[host]; b != nil {
		return b, nil
	}
	b, err := d.dialer.Dial(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("open member %s: %w", host, err)
	}
	d.mu.members[host] = b
	return b, nil
}

// Close closes the connections to members.
func (d *Deployment) Close() error {
	d.mu.Lock()
	members := d.mu.members
	d.mu.members, d.mu.closed = nil, true
	d.mu.Unlock()
	var errs []error
	for host, b := range members {
		if err := b.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close member %s: %w", host, err))
		}
	}
	return errors.Join(errs...)
}
