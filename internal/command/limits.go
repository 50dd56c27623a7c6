package command

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"oxbow/internal/auth"
	"oxbow/internal/mongoerr"
)

// Limits bound what clients may take of the command table. 0: no limit.
type Limits struct {
	ConnectionsPerUser    int
	MessagesPerConnection int // a second
	MessagesPerUser       int // a second, over all of the user's connections
	// Login is how long a connection may go without a login or a hello, where clients have to log in.
	Login time.Duration
}

// Limit is one of the limits of what clients may take.
type Limit uint8

// The limits. The first two and the last are the server's to keep.
const (
	LimitConnections Limit = iota
	LimitAddress
	LimitUser
	LimitConnectionMessages
	LimitUserMessages
	LimitLogin
	limitKinds
)

var limitNames = [limitKinds]string{
	"connections.total", "connections.address", "connections.user", "messages.connection", "messages.user", "login",
}

// String returns the limit's key in the configuration, below limits.
func (l Limit) String() string { return limitNames[l] }

// limits keeps the limits, and what the users take.
type limits struct {
	now   atomic.Pointer[Limits]
	mu    sync.Mutex
	users map[auth.UserName]*userLoad

	noted [limitKinds]atomic.Int64 // when a refusal was last logged, in nanoseconds since 1970
}

// userLoad is what a user's connections take together.
type userLoad struct {
	connections int // guarded by limits.mu
	messages    bucket
}

// bucket lets so many messages a second through, and as many at once after a second's silence.
type bucket struct {
	mu      sync.Mutex
	limiter *rate.Limiter
	limit   int
}

// take reports whether one more message may come.
func (b *bucket) take(limit int, now time.Time) bool {
	if limit == 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limiter == nil || b.limit != limit {
		b.limiter, b.limit = rate.NewLimiter(rate.Limit(limit), limit), limit
	}
	return b.limiter.AllowN(now, 1)
}

// SetLimits puts other limits in place. Connections that are open stay, whatever their number.
func (t *Table) SetLimits(l Limits) { t.limits.now.Store(&l) }

// Refuse counts what a limit refuses, and logs it: once in ten seconds, since whoever meets a limit meets it often.
func (t *Table) Refuse(l Limit, attributes ...any) {
	const silence = 10 * time.Second
	n := t.deps.Counters.Refused[l].Add(1)
	now := t.deps.Now().UnixNano()
	last := t.limits.noted[l].Load()
	if (last == 0 || now-last >= int64(silence) || now < last) && t.limits.noted[l].CompareAndSwap(last, now) {
		t.deps.Log.Warn("refused by limits."+l.String(), append(attributes, "refusedSinceStart", n)...)
	}
}

// admit refuses a message of a client that sends too many.
func (t *Table) admit(req *Request, entry *Entry) error {
	l := t.limits.now.Load()
	if l.MessagesPerConnection == 0 && l.MessagesPerUser == 0 || req.Unasked || entry != nil && entry.Unlisted {
		return nil
	}
	now := t.deps.Now()
	c := req.Conn
	if !c.messages.take(l.MessagesPerConnection, now) {
		t.Refuse(LimitConnectionMessages, "connection", c.ID, "remote", c.Remote)
		return tooFast("this connection may send %d messages a second", l.MessagesPerConnection)
	}
	if c.load != nil && !c.load.messages.take(l.MessagesPerUser, now) {
		t.Refuse(LimitUserMessages, "user", c.login.name.String())
		return tooFast("the connections of user %s may send %d messages a second", c.login.name, l.MessagesPerUser)
	}
	return nil
}

// tooFast has the code and labels of MongoDB's own limit of requests (https://jira.mongodb.org/browse/SERVER-114890).
func tooFast(format string, args ...any) error {
	err := mongoerr.New(mongoerr.RateLimitExceeded, "Request rejected: rate limit exceeded: "+format, args...)
	err.Labels = []string{"SystemOverloadedError", "RetryableError"}
	return err
}

// joinUser counts a connection to a user's, unless there are as many as there may be.
func (t *Table) joinUser(c *Conn, n auth.UserName) error {
	t.limits.mu.Lock()
	defer t.limits.mu.Unlock()
	load := t.limits.users[n]
	if load == nil {
		load = &userLoad{}
	}
	if c.load == load {
		return nil // it logs in again
	}
	if most := t.limits.now.Load().ConnectionsPerUser; most > 0 && load.connections >= most {
		t.Refuse(LimitUser, "user", n.String(), "remote", c.Remote)
		return mongoerr.New(mongoerr.OperationFailed, "too many connections of user %s: the limit is %d", n, most)
	}
	t.leaveUserLocked(c)
	load.connections++
	t.limits.users[n] = load
	c.load, c.loadOf = load, n
	return nil
}

// leaveUser takes a connection off its user's.
func (t *Table) leaveUser(c *Conn) {
	t.limits.mu.Lock()
	defer t.limits.mu.Unlock()
	t.leaveUserLocked(c)
}

func (t *Table) leaveUserLocked(c *Conn) {
	if c.load == nil {
		return
	}
	if c.load.connections--; c.load.connections == 0 {
		delete(t.limits.users, c.loadOf)
	}
	c.load = nil
}

// Connect notes a new connection.
func (t *Table) Connect(c *Conn) { t.operations.Connect(c) }

// Disconnect forgets a connection that has ended.
func (t *Table) Disconnect(c *Conn) {
	t.operations.Disconnect(c)
	t.leaveUser(c)
}

// LoginBy is when a connection is to end if its client has neither logged in by then nor said hello; zero: never. Only its own goroutine asks. A
// driver's monitor never logs in, and says hello every few seconds.
func (t *Table) LoginBy(c *Conn) time.Time {
	l := t.limits.now.Load()
	if l.Login == 0 || !t.isNobody(c) {
		return time.Time{}
	}
	if c.heard.IsZero() {
		return c.Opened.Add(l.Login)
	}
	return c.heard.Add(l.Login)
}
