package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"

	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// What a member's connections are limited to: it is asked now and then, not used by clients.
const (
	memberPool      = 8
	memberSelection = 5 * time.Second
)

// memberOptions are a deployment's options without what names its servers, for a connection to one of them.
func memberOptions(of *options.ClientOptions) *options.ClientOptions {
	o := options.Client()
	o.AppName, o.Auth, o.ServerAPIOptions, o.WriteConcern = of.AppName, of.Auth, of.ServerAPIOptions, of.WriteConcern
	o.Dialer, o.TLSConfig, o.DisableOCSPEndpointCheck, o.HTTPClient = of.Dialer, of.TLSConfig, of.DisableOCSPEndpointCheck, of.HTTPClient
	o.Compressors, o.ZlibLevel, o.ZstdLevel = of.Compressors, of.ZlibLevel, of.ZstdLevel
	o.ConnectTimeout, o.HeartbeatInterval, o.MaxConnIdleTime = of.ConnectTimeout, of.HeartbeatInterval, of.MaxConnIdleTime
	o.SetDirect(true).SetMaxPoolSize(memberPool).SetServerSelectionTimeout(memberSelection)
	return o.SetServerMonitoringMode(options.ServerMonitoringModePoll) // one connection less than the stream of news takes
}

// Hosts returns the servers that the deployment has, as far as they are known: those of the URI until one of them has answered.
func (b *Backend) Hosts() []string {
	var hosts []string
	for _, s := range b.topology.Description().Servers {
		hosts = append(hosts, s.Addr.String())
	}
	slices.Sort(hosts)
	return hosts
}

// Dial opens a backend on one server of the deployment, with the URI's credentials, encryption and application name. It does not wait until the server
// answers. The caller closes it.
func (b *Backend) Dial(_ context.Context, host string) (backend.Backend, error) {
	m := &member{host: host, patience: b.patience, options: b.alone}
	var err error
	if m.Backend, err = m.open(b.alone.Auth); err != nil {
		return nil, err
	}
	return m, nil
}

// member is one server of a deployment, asked by itself.
type member struct {
	*Backend
	host     string
	patience time.Duration
	options  *options.ClientOptions

	mu struct {
		sync.Mutex
		refused error     // why the last login failed, for a while
		until   time.Time // of that
		bare    *Backend  // without a login, for hello; nil: it was not needed
	}
}

// loginRest is how long a login that was refused is not tried again.
const loginRest = 30 * time.Second

func (m *member) open(login *options.Credential) (*Backend, error) {
	o := *m.options
	o.Auth = login
	return watch(m.host, o.SetHosts([]string{m.host}), m.patience, slog.New(slog.DiscardHandler))
}

// Run is the backend's, with two differences. A server that is asked alone answers for itself, also where it is a secondary: a command without a read
// preference gets one that allows that
// (https://github.com/mongodb/specifications/blob/master/source/server-selection/server-selection.md#topology-type-single). And hello needs no login: it
// is answered also where there is none for this server, such as for the members of a shard.
func (m *member) Run(ctx context.Context, req *backend.Request) (bson.Document, error) {
	name, _, _ := bson.First(req.Body)
	refused := m.resting()
	if refused == nil {
		reply, err := m.Backend.Run(ctx, forOne(req))
		login, isRefused := refusedLogin(err)
		if !isRefused {
			return reply, err
		}
		refused = fmt.Errorf("%w: %w", backend.ErrUnavailable, mongoerr.New(mongoerr.AuthenticationFailed, "log in to %s: %s", m.host, login))
		m.rest(refused)
	}
	if name != "hello" {
		return nil, refused
	}
	bare, err := m.withoutLogin()
	if err != nil {
		return nil, err
	}
	return bare.Run(ctx, req)
}

// forOne adds the read preference of a server that is asked alone.
func forOne(req *backend.Request) *backend.Request {
	if _, has := bson.Get(req.Body, "$readPreference"); has {
		return req
	}
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, len(req.Body)+64))
	dst = append(dst, req.Body[4:len(req.Body)-1]...)
	dst = bsoncore.BuildDocumentElement(dst, "$readPreference", bsoncore.AppendStringElement(nil, "mode", "primaryPreferred"))
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	one := *req
	one.Body = dst
	return &one
}

// resting returns why the last login was refused, while it is not tried again.
func (m *member) resting() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Now().After(m.mu.until) {
		m.mu.refused = nil
	}
	return m.mu.refused
}

func (m *member) rest(refused error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.refused, m.mu.until = refused, time.Now().Add(loginRest)
}

// withoutLogin returns the backend for hello.
func (m *member) withoutLogin() (*Backend, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.bare == nil {
		bare, err := m.open(nil)
		if err != nil {
			return nil, err
		}
		m.mu.bare = bare
	}
	return m.mu.bare, nil
}

// Close closes all connections to the server.
func (m *member) Close() error {
	m.mu.Lock()
	bare := m.mu.bare
	m.mu.Unlock()
	err := m.Backend.Close()
	if bare != nil {
		err = errors.Join(err, bare.Close())
	}
	return err
}
