package command

import "sync/atomic"

// Counters count since the start of the process; the server and the table keep them, serverStatus shows them.
type Counters struct {
	ConnectionsCurrent  atomic.Int64
	ConnectionsTotal    atomic.Int64
	ConnectionsRejected atomic.Int64
	ConnectionsMax      atomic.Int64
	Refused             [limitKinds]atomic.Int64 // by limits, see Limit
	Guarded             [guardings]atomic.Int64  // commands without an index, see Guarding

	BytesIn     atomic.Int64 // of messages, decompressed
	BytesOut    atomic.Int64
	PhysicalIn  atomic.Int64 // as they were on the socket
	PhysicalOut atomic.Int64
	Requests    atomic.Int64
	BadMessages atomic.Int64
	Panics      atomic.Int64
	UserErrors  atomic.Int64 // commands that answered ok: 0
	byKind      [kinds]atomic.Int64
}

// count adds one command to the counter that serverStatus shows it in: inserts, updates and deletes count by statement, as in MongoDB.
func (c *Counters) count(req *Request) {
	k, n := kindOf(req.Name), int64(1)
	if statements := kindNames[k].statements; statements != "" {
		n = req.statements(statements)
	}
	c.byKind[k].Add(n)
}

// RefusedByLimits are the counts of what limits refused, by the names of the limits.
func (c *Counters) RefusedByLimits() map[string]int64 {
	counts := make(map[string]int64, limitKinds)
	for l := range c.Refused {
		counts[Limit(l).String()] = c.Refused[l].Load()
	}
	return counts
}

// GuardedCommands are the counts of what became of guarded commands, by the names of these outcomes.
func (c *Counters) GuardedCommands() map[string]int64 {
	counts := make(map[string]int64, guardings)
	for g := range c.Guarded {
		counts[Guarding(g).String()] = c.Guarded[g].Load()
	}
	return counts
}

// Operations are the counters of serverStatus' opcounters, by the names that stand there.
func (c *Counters) Operations() map[string]int64 {
	counts := make(map[string]int64, kinds)
	for k := range c.byKind {
		counts[kindNames[k].counter] = c.byKind[k].Load()
	}
	return counts
}
