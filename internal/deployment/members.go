package deployment

import (
	"context"
)

// Members returns the members of the deployment: of a replica set all of its members; of a sharded cluster its routers, then the members of its shards; else
// the one server. A router that tells of no shards, such as another Oxbow, is the one server. Each member is asked itself: one that does not answer has the state
// that its set gives it, and a Why. The error is that of a deployment that does not answer at all.
func (d *Deployment) Members(ctx context.Context) ([]Member, error) {
	h, err := d.shape(ctx)
	switch {
	case err != nil:
		return nil, err
	case d.dialer == nil:
		return []Member{{Host: d.name, State: Primary}}, nil
	case h.router:
		return d.clusterMembers(ctx), nil
	case h.set == "":
		return []Member{{Host: d.onlyHost(), State: h.state}}, nil
	}
	set, err := d.read(ctx, d.whole, h)
	if err != nil {
		return nil, err
	}
	d.visit(ctx, set.Members)
	return set.Members, nil
}

// onlyHost is where a server is that is in no replica set.
func (d *Deployment) onlyHost() string {
	if hosts := d.dialer.Hosts(); len(hosts) > 0 {
		return hosts[0]
	}
	return d.name
}

// clusterMembers are the members of a sharded cluster. Shards that can't be asked are Why of its routers.
func (d *Deployment) clusterMembers(ctx context.Context) []Member {
	why := ""
	shards, err := d.shards(ctx)
	var sets []Set
	if err == nil {
		sets, err = d.setsOf(ctx, shards)
	}
	if err != nil {
		why = err.Error()
	}
	var all []Member
	for _, host := range d.dialer.Hosts() {
		all = append(all, Member{Host: host, State: Router, Why: why})
	}
	for i, set := range sets {
		if set.Members == nil {
			set.Members = silent(shards[i])
		}
		all = append(all, set.Members...)
	}
	d.visit(ctx, all)
	return all
}

// silent are the members of a shard none of which answers.
func silent(s shard) []Member {
	all := make([]Member, len(s.hosts))
	for i, host := range s.hosts {
		all[i] = Member{Host: host, Set: s.set, State: Unreachable, Votes: 1}
	}
	return all
}

// visit asks each member itself.
func (d *Deployment) visit(ctx context.Context, members []Member) {
	d.greetEach(ctx, members, func(m *Member, h hello, err error) {
		switch {
		case err != nil:
			m.Why = err.Error()
		case h.state != Other || m.State != Other: // of these the set knows more
			m.takeState(h)
		}
	})
}

// takeState takes what a member says that it does, which is newer than what its set says.
func (m *Member) takeState(h hello) {
	if m.State == Router {
		return
	}
	m.State, m.Why = h.state, ""
	if h.state == Other {
		m.Why = "it is neither primary nor secondary"
	}
	if m.Applied.Before(h.applied) {
		m.Applied = h.applied
	}
}
