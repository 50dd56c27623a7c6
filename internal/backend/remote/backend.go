package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"

	"go.mongodb.org/mongo-driver/v2/mongo/address"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// Backend runs commands on one deployment.
type Backend struct {
	name     string
	topology *topology.Topology
	dialer   *dialer
	circuit  *circuit
	end      context.CancelFunc // of the circuit's probes and the lookout

	places   int           // connections to a server, at most
	patience time.Duration // the most that a command waits for one
	window   time.Duration // the most that a server may be further away than the nearest
	maxIdle  time.Duration // after which a connection is not used any more; 0: never
	concern  []byte        // the write concern of commands that have none, as an element; nil: the servers' own

	alone *options.ClientOptions // those of a connection to one of the servers alone

	selection selection
	selecting atomic.Int64 // commands that wait for a server
	mu        struct {
		sync.Mutex
		lines map[address.Address]*line
	}
	cursors      cursors
	transactions transactions
	kills        sync.WaitGroup // of commands whose context has ended
	looks        sync.WaitGroup // the lookout
}

var _ backend.Backend = (*Backend)(nil)

// The drivers' maxPoolSize and localThresholdMS where a URI has none.
const (
	defaultPoolSize = 100
	defaultWindow   = 15 * time.Millisecond
)

// Open starts to watch the deployment that uri names, as the drivers' connection strings do
// (https://www.mongodb.com/docs/manual/reference/connection-string/). It does not wait until a server answers: Run does, for the URI's
// serverSelectionTimeoutMS.
func Open(uri string) (*Backend, error) {
	return OpenNamed("", uri, slog.New(slog.DiscardHandler))
}

// OpenNamed is Open for a deployment with a name for its errors, and a log that gets a line when it stops answering and when it answers again.
func OpenNamed(name, uri string, log *slog.Logger) (*Backend, error) {
	opts := options.Client().ApplyURI(uri)
	if opts.AppName == nil {
		opts.SetAppName("oxbow")
	}
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("read the backend's URI: %w", withoutSecrets(err, uri))
	}
	if err := refuseOptions(opts); err != nil {
		return nil, fmt.Errorf("read the backend's URI: %w", err)
	}
	if err := refuseUnknown(uri); err != nil {
		return nil, fmt.Errorf("read the backend's URI: %w", err)
	}
	if opts.MaxPoolSize == nil {
		opts.SetMaxPoolSize(defaultPoolSize)
	}
	patience, err := waitQueueTimeout(uri)
	if err != nil {
		return nil, fmt.Errorf("read the backend's URI: %w", err)
	}
	alone := memberOptions(opts)
	b, err := watch(name, opts, patience, log)
	if err != nil {
		return nil, withoutSecrets(err, uri)
	}
	b.alone = alone
	return b, nil
}

// watch starts to watch the servers that the options name. They are changed.
func watch(name string, opts *options.ClientOptions, patience time.Duration, log *slog.Logger) (*Backend, error) {
	b := &Backend{name: name, places: math.MaxInt, patience: patience, dialer: takeDialing(opts)}
	if n := *opts.MaxPoolSize; n > 0 && n < math.MaxInt {
		b.places = int(n)
	}
	b.window = defaultWindow
	if opts.LocalThreshold != nil {
		b.window = *opts.LocalThreshold
	}
	if opts.MaxConnIdleTime != nil {
		b.maxIdle = *opts.MaxConnIdleTime
	}
	b.mu.lines = make(map[address.Address]*line)
	var err error
	if b.concern, err = concernOf(opts.WriteConcern); err != nil {
		return nil, fmt.Errorf("read the backend's URI: %w", err)
	}
	config, err := topology.NewConfig(opts, nil)
	if err != nil {
		return nil, fmt.Errorf("configure the backend: %w", err)
	}
	if b.topology, err = topology.New(config); err != nil {
		return nil, fmt.Errorf("configure the backend: %w", err)
	}
	if err := b.topology.Connect(); err != nil {
		return nil, fmt.Errorf("watch the backend: %w", err)
	}
	var life context.Context
	life, b.end = context.WithCancel(context.Background())
	b.circuit = newCircuit(life, log)
	b.looks.Go(func() { b.dialer.lookout.run(life, b.dialer.look) })
	return b, nil
}

// once sends one command and returns the server's reply.
func (b *Backend) once(ctx context.Context, req *backend.Request) (bson.Document, error) {
	if req.Targets != nil {
		return nil, fmt.Errorf("%w: a remote backend takes no targets", backend.ErrUnavailable)
	}
	name, arg, _ := bson.First(req.Body)
	choice, err := b.choose(name, arg, req.Body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
	}
	if reason := b.circuit.admit(); reason != "" {
		return nil, b.turnedAway(mongoerr.HostUnreachable, reason)
	}
	if err := ctx.Err(); errors.Is(err, context.Canceled) { // the lookout may see that too late
		return nil, fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
	}
	began := time.Now()
	l, err := b.borrow(ctx, choice)
	if err != nil {
		return nil, b.notSent(ctx, began, choice, err)
	}
	defer b.giveBack(l)
	if answersLarge[name] {
		if err := req.Memory.Grow(expectedReply); err != nil {
			return nil, fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
		}
	}
	b.pinTransaction(name, req.Body, l.host, l.conn.Address())
	reply, err := l.roundTrip(ctx, req)
	if more := int64(len(reply)) - req.Memory.Used(); more > 0 {
		req.Memory.Force(more)
	}
	if err != nil {
		b.noReply(ctx, began, choice, err)
		if wantsKill(ctx, name) {
			b.killOn(l.conn.Address(), l.conn.ServerConnectionID())
		}
		return nil, fmt.Errorf("run %s on %s: %w", name, l.conn.Address(), err)
	}
	now := time.Now()
	b.circuit.replied(now)
	if backend.Check(reply) != nil || hasConcernError(reply) {
		l.report(driver.ExtractErrorFromServerResponse(reply))
	}
	b.cursors.note(name, arg, reply, l.conn.Address(), now)
	return reply, nil
}

// errNoConnection marks the failure to get a connection to a server that could be selected: nothing was sent.
var errNoConnection = errors.New("get a connection")

// hasConcernError reports whether a write was done and not confirmed, which may be news of the server.
func hasConcernError(reply bson.Document) bool {
	_, has := bson.Get(reply, "writeConcernError")
	return has
}

// answersLarge are the commands whose replies can be large. How large is not known before one is there: so expectedReply bytes have to be free, and the
// reply itself is kept, since what it tells has happened.
var answersLarge = map[string]bool{"find": true, "getMore": true, "aggregate": true, "distinct": true}

const expectedReply = 256 << 10

// turnedAway is the error of a command that was not even tried, after which drivers retry what may be retried.
func (b *Backend) turnedAway(code mongoerr.Code, reason string) error {
	return fmt.Errorf("%w: %w", backend.ErrUnavailable, mongoerr.New(code, "backend %s takes no commands now: %s", b.name, reason))
}

// notSent turns what kept a command from being sent into its error, and notes it.
func (b *Backend) notSent(ctx context.Context, began time.Time, c choice, err error) error {
	if errors.Is(err, errLong) {
		b.circuit.turnedAway(err)
		return b.turnedAway(mongoerr.ExceededTimeLimit, err.Error())
	}
	b.noReply(ctx, began, c, err)
	if errors.Is(err, errWaited) {
		return b.turnedAway(mongoerr.ExceededTimeLimit, err.Error())
	}
	return fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
}

// noReply notes a command without a reply, unless nobody wants one any more, or it asked for a server that a deployment which is well does not have.
func (b *Backend) noReply(ctx context.Context, began time.Time, c choice, err error) {
	if errors.Is(ctx.Err(), context.Canceled) || errors.Is(err, errNoServer) && b.hasPrimary() {
		return
	}
	b.circuit.failed(began, err, func(ctx context.Context) error { return b.ping(ctx, c) })
}

// ping asks a server of a choice's mode whether it is there; the primary where there is none of that mode: with it the deployment is well.
func (b *Backend) ping(ctx context.Context, c choice) error {
	c = choice{mode: c.mode, window: b.window}
	if c.mode == "" { // the server of a cursor or a transaction was asked
		c.mode = "nearest"
	}
	if _, there := b.atOnce(c); !there && b.hasPrimary() {
		c = b.primary()
	}
	l, err := b.borrow(ctx, c)
	if err != nil {
		return err
	}
	defer b.giveBack(l)
	_, err = l.roundTrip(ctx, &backend.Request{Body: pingCommand})
	return err
}

var pingCommand = bson.Document("\x1e\x00\x00\x00\x10ping\x00\x01\x00\x00\x00\x02$db\x00\x06\x00\x00\x00admin\x00\x00")

// Abilities says that this is MongoDB and no more.
func (b *Backend) Abilities() backend.Abilities { return backend.Abilities{} }

// Close stops watching and closes every connection; running commands end with an error.
func (b *Backend) Close() error {
	b.end()
	b.dialer.close()
	now, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.topology.Disconnect(now); err != nil && !errors.Is(err, topology.ErrTopologyClosed) {
		return fmt.Errorf("close the backend: %w", err)
	}
	b.kills.Wait()
	b.looks.Wait()
	return nil
}
