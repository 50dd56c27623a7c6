package remote

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/ocsp"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// dialer makes the connections of a deployment, and knows them again when the driver lends them out. It encrypts them too: of a connection that the
// driver encrypts only the driver could read.
type dialer struct {
	dial options.ContextDialer
	tls  *tls.Config // nil: connections are not encrypted
	ocsp ocsp.VerifyOptions

	lookout *lookout // for the ends of commands

	mu struct {
		sync.RWMutex
		last   uint64
		links  map[linkName]*link
		closed bool
	}
}

// takeDialing puts a dialer in the place of what the options say about dialing and encryption.
func takeDialing(opts *options.ClientOptions) *dialer {
	d := &dialer{dial: opts.Dialer, tls: opts.TLSConfig, lookout: newLookout()}
	if d.dial == nil {
		d.dial = &net.Dialer{}
	}
	d.ocsp = ocsp.VerifyOptions{Cache: ocsp.NewCache(), HTTPClient: cmp.Or(opts.HTTPClient, http.DefaultClient)}
	if off := opts.DisableOCSPEndpointCheck; off != nil {
		d.ocsp.DisableEndpointChecking = *off
	}
	d.mu.links = make(map[linkName]*link)
	opts.TLSConfig = nil
	opts.SetDialer(d)
	return d
}

// DialContext implements options.ContextDialer.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	nc, err := d.dial.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if d.tls != nil {
		encrypted, err := d.encrypt(ctx, nc, address)
		if err != nil {
			nc.Close()
			return nil, err
		}
		nc = encrypted
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.closed {
		nc.Close()
		return nil, net.ErrClosed
	}
	d.mu.last++
	l := &link{Conn: nc, dialer: d, name: linkName(strconv.FormatUint(d.mu.last, 10))}
	d.mu.links[l.name] = l
	return l, nil
}

// encrypt does what the driver does: the server has to have a certificate for its name, which is not revoked.
func (d *dialer) encrypt(ctx context.Context, nc net.Conn, address string) (*tls.Conn, error) {
	config := d.tls
	if config.ServerName == "" {
		config = config.Clone()
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			host = address
		}
		config.ServerName = host
	}
	encrypted := tls.Client(nc, config)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	if !config.InsecureSkipVerify {
		if err := ocsp.Verify(ctx, encrypted.ConnectionState(), &d.ocsp); err != nil {
			return nil, err
		}
	}
	return encrypted, nil
}

// close closes all links, those of the driver's monitors among them: a monitor may otherwise keep the end waiting until the server answers it, for ten
// seconds. Nothing is dialed any more.
func (d *dialer) close() {
	d.mu.Lock()
	d.mu.closed = true
	links := slices.Collect(maps.Values(d.mu.links))
	d.mu.Unlock()
	for _, l := range links {
		l.Close()
	}
}

// forget is told that a link is closed.
func (d *dialer) forget(l *link) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.mu.links, l.name)
}

// linkOf returns the link of a connection that the driver lends.
func (d *dialer) linkOf(conn *mnet.Connection) (*link, error) {
	lent, ok := conn.ReadWriteCloser.(*topology.Connection)
	if !ok {
		return nil, fmt.Errorf("the driver lends a %T", conn.ReadWriteCloser)
	}
	name := linkName(lent.LocalAddress())
	d.mu.RLock()
	l := d.mu.links[name]
	d.mu.RUnlock()
	if l == nil {
		return nil, topology.ErrConnectionClosed
	}
	if !l.lent.Swap(true) {
		// The driver's handshake has left its own deadline, connectTimeoutMS after the dialing.
		if err := l.Conn.SetDeadline(time.Time{}); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// look has all links look whether their commands have ended. It reports whether there is a command.
func (d *dialer) look() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	any := false
	for _, l := range d.mu.links {
		any = l.look() || any
	}
	return any
}

// open is how many links have served commands and are not closed.
func (d *dialer) open() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	n := 0
	for _, l := range d.mu.links {
		if l.lent.Load() {
			n++
		}
	}
	return n
}
