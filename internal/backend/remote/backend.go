package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"

	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// Backend runs commands on one deployment.
type Backend struct {
	topology *topology.Topology

	cursors      cursors
	transactions transactions
}

var _ backend.Backend = (*Backend)(nil)

// Open starts to watch the deployment that uri names, as the drivers' connection strings do
// (https://www.mongodb.com/docs/manual/reference/connection-string/). It does not wait until a server answers: Run does, for the URI's
// serverSelectionTimeoutMS.
func Open(uri string) (*Backend, error) {
	opts := options.Client().ApplyURI(uri)
	if opts.AppName == nil {
		opts.SetAppName("oxbow")
	}
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("read the backend's URI: %w", err)
	}
	config, err := topology.NewConfig(opts, nil)
	if err != nil {
		return nil, fmt.Errorf("configure the backend: %w", err)
	}
	t, err := topology.New(config)
	if err != nil {
		return nil, fmt.Errorf("configure the backend: %w", err)
	}
	if err := t.Connect(); err != nil {
		return nil, fmt.Errorf("watch the backend: %w", err)
	}
	return &Backend{topology: t}, nil
}

// Run sends one command and returns the server's reply.
func (b *Backend) Run(ctx context.Context, req *backend.Request) (bson.Document, error) {
	if req.Targets != nil {
		return nil, fmt.Errorf("%w: a remote backend takes no targets", backend.ErrUnavailable)
	}
	name, arg, _ := bson.First(req.Body)
	server, conn, err := b.connect(ctx, name, arg, req.Body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
	}
	defer conn.Close()
	if answersLarge[name] {
		if err := req.Memory.Grow(expectedReply); err != nil {
			return nil, fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
		}
	}
	b.pinTransaction(name, req.Body, server, conn.Address())
	reply, err := roundTrip(ctx, conn, req)
	if more := int64(len(reply)) - req.Memory.Used(); more > 0 {
		req.Memory.Force(more)
	}
	if err != nil {
		if errors.Is(err, errMalformed) {
			discard(conn)
		}
		b.report(server, err, conn)
		return nil, fmt.Errorf("run %s on %s: %w", name, conn.Address(), err)
	}
	if backend.Check(reply) != nil {
		b.report(server, driver.ExtractErrorFromServerResponse(reply), conn)
	}
	b.cursors.note(name, arg, reply, conn.Address(), time.Now())
	return reply, nil
}

// answersLarge are the commands whose replies can be large. How large is not known before one is there: so expectedReply bytes have to be free, and the
// reply itself is kept, since what it tells has happened.
var answersLarge = map[string]bool{"find": true, "getMore": true, "aggregate": true, "distinct": true}

const expectedReply = 256 << 10

// discard closes a connection whose bytes can't be trusted any more: the pool would hand it to the next command, which would read
// what is left of the reply to this one.
func discard(conn *mnet.Connection) {
	if c, ok := conn.ReadWriteCloser.(driver.Expirable); ok {
		_ = c.Expire() // the connection is given up, however it ends
	}
}

// connect gets a connection to a server that the command may go to.
func (b *Backend) connect(ctx context.Context, name string, arg bson.Value, body bson.Document) (driver.Server, *mnet.Connection, error) {
	choice, err := b.choose(name, arg, body)
	if err != nil {
		return nil, nil, err
	}
	server, err := b.selectServer(ctx, choice)
	if err != nil {
		return nil, nil, fmt.Errorf("select a server: %w", err)
	}
	conn, err := server.Connection(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("get a connection: %w", err)
	}
	return server, conn, nil
}

// selectServer waits for a server, for the URI's serverSelectionTimeoutMS at most.
func (b *Backend) selectServer(ctx context.Context, c choice) (driver.Server, error) {
	ctx, cancel := context.WithTimeout(ctx, b.topology.GetServerSelectionTimeout())
	defer cancel()
	return b.topology.SelectServer(ctx, c)
}

// Abilities says that this is MongoDB and no more.
func (b *Backend) Abilities() backend.Abilities { return backend.Abilities{} }

// Close stops watching and closes every connection; running commands end with an error.
func (b *Backend) Close() error {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.topology.Disconnect(now); err != nil && !errors.Is(err, topology.ErrTopologyClosed) {
		return fmt.Errorf("close the backend: %w", err)
	}
	return nil
}
