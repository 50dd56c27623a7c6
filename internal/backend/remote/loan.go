package remote

import (
	"context"
	"fmt"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// loan is a connection that the driver's pool has lent for good: command after command uses it, since to lend it for each anew would cost more than to send
// the command. It goes back when it is broken, or of a generation that the pool has given up.
type loan struct {
	*link
	host   host
	conn   *mnet.Connection
	broken bool      // its bytes can't be trusted any more
	used   time.Time // when its last command was over, where that matters
}

// borrow waits for a server of a choice and for a connection to it.
func (b *Backend) borrow(ctx context.Context, c choice) (*loan, error) {
	to, err := b.selectServer(ctx, c)
	if err != nil {
		return nil, err
	}
	left, waited, err := to.line.enter(ctx)
	if err != nil {
		return nil, err
	}
	if !waited {
		b.circuit.flows()
	}
	if left != nil && b.fresh(left) {
		return left, nil
	}
	// Its place taken, the command need not wait for others here, only for a connection that is being made; that has the URI's connectTimeoutMS.
	l, err := b.lend(ctx, to)
	if err != nil {
		to.line.leave(nil)
		return nil, fmt.Errorf("%w: %w", errNoConnection, err)
	}
	return l, nil
}

// fresh reports whether a connection can serve another command. One that can't goes back to the pool, which closes it.
func (b *Backend) fresh(l *loan) bool {
	if l.conn.Stale() {
		_ = l.conn.Close() // fails only when the pool is closed
		return false
	}
	if b.maxIdle != 0 && time.Since(l.used) > b.maxIdle {
		l.expire()
		return false
	}
	return true
}

// lend gets a connection from the driver's pool.
func (b *Backend) lend(ctx context.Context, to host) (*loan, error) {
	conn, err := to.Connection(ctx)
	if err != nil {
		return nil, err
	}
	k, err := b.dialer.linkOf(conn)
	if err != nil {
		_ = conn.Close() // it is of no use, however it ends
		return nil, err
	}
	return &loan{link: k, host: to, conn: conn}, nil
}

// giveBack ends a command's use of a connection. A broken one is closed: it would give the next command what is left of the reply to this one.
func (b *Backend) giveBack(l *loan) {
	line := l.host.line
	if l.broken {
		l.expire()
		line.leave(nil)
		return
	}
	if b.maxIdle != 0 {
		l.used = time.Now()
	}
	line.leave(l)
}

// expire has the pool close the connection.
func (l *loan) expire() {
	if c, ok := l.conn.ReadWriteCloser.(driver.Expirable); ok {
		_ = c.Expire() // the connection is given up, however it ends
	}
}

// roundTrip sends a command and reads the reply to it. The end of ctx ends it.
func (l *loan) roundTrip(ctx context.Context, req *backend.Request) (bson.Document, error) {
	l.begin(ctx)
	reply, err := l.exchange(l.conn, req)
	if !l.finish() || err != nil {
		l.broken = true
	}
	if err != nil && ctx.Err() == nil {
		l.report(topology.ConnectionError{ConnectionID: l.conn.ID(), Wrapped: err})
	}
	return reply, err
}

// report tells the topology about an error, so that it looks for a new primary or clears a pool.
func (l *loan) report(err error) {
	if err != nil {
		l.host.ProcessError(err, l.conn)
	}
}
