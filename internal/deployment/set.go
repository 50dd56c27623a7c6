package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
)

// Set is a replica set as one of its members sees it.
type Set struct {
	Name    string
	Members []Member
	Primary string // its Host; "": there is none
	Term    int64  // grows with each election; 0: not known
	Needed  int    // members with data and a vote that have to confirm a write with w: majority
	Partial string // what could not be asked for, and why: then hidden members, delays or states may be missing; "": nothing
}

// Leader returns the primary, or nil.
func (s *Set) Leader() *Member {
	for i := range s.Members {
		if s.Members[i].State == Primary {
			return &s.Members[i]
		}
	}
	return nil
}

// Sets returns the replica sets of the deployment, none where it has none, with what their members are and how far they have got. It asks one member of each
// set, or all of them where that one may not tell. The error is that of a deployment that does not answer, or of a shard that does not.
func (d *Deployment) Sets(ctx context.Context) ([]Set, error) {
	h, err := d.shape(ctx)
	switch {
	case err != nil:
		return nil, err
	case h.router:
		shards, err := d.shards(ctx)
		if err != nil {
			return nil, err
		}
		return d.setsOf(ctx, shards)
	case h.set == "":
		return nil, nil
	}
	set, err := d.read(ctx, d.whole, h)
	if err != nil {
		return nil, err
	}
	return []Set{set}, nil
}

// shape asks what the deployment is. An embedded engine is in no replica set.
func (d *Deployment) shape(ctx context.Context) (hello, error) {
	if d.dialer == nil {
		return hello{state: Primary}, nil
	}
	return greet(ctx, d.whole)
}

// shard is a shard as its router names it (https://www.mongodb.com/docs/manual/reference/command/listShards/).
type shard struct {
	name  string
	set   string // "": it is no replica set
	hosts []string
}

var listShards = command("listShards")

// shards are those that a router tells of; none where it does not know what that is.
func (d *Deployment) shards(ctx context.Context) ([]shard, error) {
	reply, err := backend.Ask(ctx, d.whole, listShards)
	if isUnknown(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []shard
	list, _ := bson.Get(reply, "shards")
	it := bson.Elements(list.Data)
	for it.Next() {
		name, _ := bson.Get(it.Value().Data, "_id")
		host, _ := bson.Get(it.Value().Data, "host")
		set, hosts, ok := strings.Cut(text(host), "/")
		if !ok {
			set, hosts = "", set
		}
		all = append(all, shard{text(name), set, strings.Split(hosts, ",")})
	}
	return all, nil
}

// setsOf reads the replica sets of shards, all at once.
func (d *Deployment) setsOf(ctx context.Context, shards []shard) ([]Set, error) {
	sets, errs := make([]Set, len(shards)), make([]error, len(shards))
	var wait sync.WaitGroup
	for i, s := range shards {
		wait.Go(func() { sets[i], errs[i] = d.setOf(ctx, s) })
	}
	wait.Wait()
	return sets, errors.Join(errs...)
}

// setOf reads the replica set of a shard: from the member that was its primary last, or from the first that answers.
func (d *Deployment) setOf(ctx context.Context, s shard) (Set, error) {
	hosts := slices.Clone(s.hosts)
	d.mu.Lock()
	if last := slices.Index(hosts, d.mu.asked[s.name]); last > 0 {
		hosts[0], hosts[last] = hosts[last], hosts[0]
	}
	d.mu.Unlock()
	var errs []error
	for i, host := range hosts {
		set, err := d.readFrom(ctx, host, len(hosts)-i)
		if err == nil {
			d.mu.Lock()
			d.mu.asked[s.name] = set.Primary
			d.mu.Unlock()
			return set, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", host, err))
	}
	return Set{}, fmt.Errorf("ask shard %s: %w", s.name, errors.Join(errs...))
}

// readFrom reads a set from one of its members. Of the time that is left it takes what leaves as much for each of the others.
func (d *Deployment) readFrom(ctx context.Context, host string, left int) (Set, error) {
	if until, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(until)/time.Duration(left))
		defer cancel()
	}
	b, err := d.On(ctx, host)
	if err != nil {
		return Set{}, err
	}
	h, err := greet(ctx, b)
	if err != nil {
		return Set{}, err
	}
	return d.read(ctx, b, h)
}

var statusCommand = command("replSetGetStatus")

// read reads a set through a backend of one of its members or of all: by replSetGetStatus, or, where that is refused, by what its members tell of
// themselves.
func (d *Deployment) read(ctx context.Context, b backend.Backend, h hello) (Set, error) {
	reply, err := backend.Ask(ctx, b, statusCommand)
	if err != nil {
		if !isRefused(err) {
			return Set{}, err
		}
		set := d.greetAll(ctx, h)
		set.Partial = err.Error()
		return set, nil
	}
	set := readStatus(reply)
	config, err := d.config(ctx, b, h)
	if err != nil {
		set.Partial = err.Error()
	}
	config.complete(&set, h.me)
	return set, nil
}

// readStatus reads what replSetGetStatus tells (https://www.mongodb.com/docs/manual/reference/command/replSetGetStatus/#output).
func readStatus(reply bson.Document) Set {
	name, _ := bson.Get(reply, "set")
	set := Set{Name: text(name), Term: number(reply, "term"), Needed: int(number(reply, "writeMajorityCount"))}
	list, _ := bson.Get(reply, "members")
	it := bson.Elements(list.Data)
	for it.Next() {
		doc := it.Value().Data
		host, _ := bson.Get(doc, "name")
		state, _ := bson.Get(doc, "stateStr")
		applied, _ := bson.Get(doc, "optimeDate")
		m := Member{Host: text(host), Set: set.Name, Votes: 1}
		m.setState(text(state))
		if at, ok := applied.TimeOK(); ok && at.Unix() > 0 {
			m.Applied = at
		}
		if m.State == Unreachable {
			message, _ := bson.Get(doc, "lastHeartbeatMessage")
			m.Why = text(message)
		}
		if m.State == Primary {
			set.Primary = m.Host
		}
		set.Members = append(set.Members, m)
	}
	return set
}

// greetAll asks every member that a server tells of what it is.
func (d *Deployment) greetAll(ctx context.Context, h hello) Set {
	set := Set{Name: h.set}
	for _, host := range h.hosts {
		set.Members = append(set.Members, Member{Host: host, Set: h.set, Votes: 1})
	}
	for _, host := range h.arbiters {
		set.Members = append(set.Members, Member{Host: host, Set: h.set, Votes: 1, State: Arbiter})
	}
	d.greetEach(ctx, set.Members, func(m *Member, h hello, err error) {
		if err != nil {
			m.State, m.Why = Unreachable, err.Error()
			return
		}
		m.describe(h)
	})
	voters, data := 0, 0
	for i := range set.Members {
		m := &set.Members[i]
		voters += m.Votes
		if m.HoldsData() {
			data += m.Votes
		}
		if m.State == Primary {
			set.Primary = m.Host
		}
	}
	set.Needed = neededOf(voters, data)
	return set
}

// neededOf is how many members have to confirm a write with w: majority: the majority of all that vote, but no more than have data
// (https://www.mongodb.com/docs/manual/reference/write-concern/#calculating-majority-for-write-concern).
func neededOf(voters, data int) int { return min(voters/2+1, data) }

// patience is how long a member has for its answer to hello.
const patience = 2 * time.Second

// greetEach asks members for hello, all at once, and gives each what came of it.
func (d *Deployment) greetEach(ctx context.Context, members []Member, take func(m *Member, h hello, err error)) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var wait sync.WaitGroup
	for i := range members {
		wait.Go(func() {
			m := &members[i]
			b, err := d.On(ctx, m.Host)
			var h hello
			if err == nil {
				h, err = greet(ctx, b)
			}
			take(m, h, err)
		})
	}
	wait.Wait()
}

// config is a replica set's configuration, as far as it concerns what members are
// (https://www.mongodb.com/docs/manual/reference/replica-configuration/).
type config struct {
	version int64
	members []configured
}

type configured struct {
	Member
	arbiter  bool
	horizons map[string]string // its hosts in other networks, by the network's name
}

var configCommand = command("replSetGetConfig")

// config reads a set's configuration, when it has changed.
func (d *Deployment) config(ctx context.Context, b backend.Backend, h hello) (config, error) {
	d.mu.Lock()
	known, ok := d.mu.configs[h.set]
	d.mu.Unlock()
	if ok && h.version != 0 && known.version == h.version {
		return known, nil
	}
	reply, err := backend.Ask(ctx, b, configCommand)
	if err != nil {
		return config{}, err
	}
	doc, _ := bson.Get(reply, "config")
	c := readConfig(doc.Data)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.configs[h.set] = c
	return c, nil
}

func readConfig(doc []byte) config {
	c := config{version: number(doc, "version")}
	list, _ := bson.Get(doc, "members")
	it := bson.Elements(list.Data)
	for it.Next() {
		m := configured{Member: Member{Votes: 1}}
		fields := bson.Elements(it.Value().Data)
		for fields.Next() {
			v := fields.Value()
			switch string(fields.Key()) {
			case "host":
				m.Host = text(v)
			case "arbiterOnly":
				m.arbiter = isTrue(v)
			case "hidden":
				m.Hidden = isTrue(v)
			case "secondaryDelaySecs", "slaveDelay":
				m.Delay = seconds(v)
			case "tags":
				m.Tags = textsByName(v)
			case "votes":
				n, _ := v.AsInt64OK()
				m.Votes = int(n)
			case "horizons":
				m.horizons = textsByName(v)
			}
		}
		c.members = append(c.members, m)
	}
	return c
}

// complete adds to a set what its configuration says, and gives its members the hosts of the network in which the answering one is called me.
func (c *config) complete(set *Set, me string) {
	horizon := c.horizonOf(me)
	voters, data := 0, 0
	for i := range set.Members {
		m := &set.Members[i]
		at := slices.IndexFunc(c.members, func(o configured) bool { return o.Host == m.Host })
		if at < 0 {
			voters, data = voters+m.Votes, data+m.Votes
			continue
		}
		o := &c.members[at]
		m.Hidden, m.Delay, m.Tags, m.Votes = o.Hidden, o.Delay, o.Tags, o.Votes
		voters += m.Votes
		if !o.arbiter {
			data += m.Votes
		}
		if host := o.horizons[horizon]; host != "" {
			if set.Primary == m.Host {
				set.Primary = host
			}
			m.Host = host
		}
	}
	if set.Needed == 0 { // before MongoDB 4.2.1
		set.Needed = neededOf(voters, data)
	}
}

// horizonOf returns the network in which a member has a host; "": that of the configuration.
func (c *config) horizonOf(host string) string {
	for i := range c.members {
		for name, h := range c.members[i].horizons {
			if h == host {
				return name
			}
		}
	}
	return ""
}
