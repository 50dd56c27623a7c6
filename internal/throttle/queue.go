package throttle

import (
	"context"

	"oxbow/internal/bson"
)

// queueProbe looks at the operations that wait on a server: globalLock.currentQueue of serverStatus.
type queueProbe struct{ *view }

// Name implements Probe.
func (queueProbe) Name() string { return Queue }

// Look implements Probe.
func (p queueProbe) Look(ctx context.Context) (Verdict, error) {
	return p.over(ctx, Queue, "the queue", func(l *load) float64 { return l.queued })
}

// ticketsProbe looks at the tickets that are left for operations in WiredTiger. From MongoDB 7.0 on their number follows the load, and none left means
// nothing (https://www.mongodb.com/docs/manual/core/wiredtiger/#transaction--read-and-write--concurrency): there it is absent.
type ticketsProbe struct{ *view }

// Name implements Probe.
func (ticketsProbe) Name() string { return Tickets }

// dynamicTickets is the first release in which the number of tickets follows the load.
const dynamicTickets = 7

// Look implements Probe.
func (p ticketsProbe) Look(ctx context.Context) (Verdict, error) {
	return p.over(ctx, Tickets, "the share of free tickets", func(l *load) float64 { return l.ticketsFree })
}

// parseTickets reads wiredTiger.concurrentTransactions.
func (l *load) parseTickets(reply bson.Document) {
	if l.version == 0 || l.version >= dynamicTickets {
		return
	}
	for _, of := range [...]string{"read", "write"} {
		free, ok := figure(reply, "wiredTiger", "concurrentTransactions", of, "available")
		total, has := figure(reply, "wiredTiger", "concurrentTransactions", of, "totalTickets")
		if ok && has && total > 0 && (l.ticketsFree < 0 || free/total < l.ticketsFree) {
			l.ticketsFree = free / total
		}
	}
}
