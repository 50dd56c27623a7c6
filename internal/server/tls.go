package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"net"
	"os"
	"sync/atomic"
)

// TLS encrypts the connections of a listener. Its files can be read again while it serves, as certificates run out.
type TLS struct {
	certificate, key, clients string
	now                       atomic.Pointer[tls.Config]
}

// LoadTLS reads PEM files: a certificate with its chain, its key, and, where clients is not "", the authorities of which every client must show a
// certificate. TLS 1.2 and later are spoken, as by MongoDB.
func LoadTLS(certificate, key, clients string) (*TLS, error) {
	t := &TLS{certificate: certificate, key: key, clients: clients}
	apply, err := t.Read()
	if err != nil {
		return nil, err
	}
	apply()
	return t, nil
}

// Read reads the files again, and returns what puts them in place of those read before, for connections from then on.
func (t *TLS) Read() (apply func(), err error) {
	pair, err := tls.LoadX509KeyPair(t.certificate, t.key)
	if err != nil {
		return nil, fmt.Errorf("load the certificate of TLS: %w", err)
	}
	cfg := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if t.clients != "" {
		authorities, err := os.ReadFile(t.clients)
		if err != nil {
			return nil, fmt.Errorf("load the authorities of clients: %w", err)
		}
		cfg.ClientCAs, cfg.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !cfg.ClientCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("load the authorities of clients: %s has no certificate", t.clients)
		}
	}
	return func() { t.now.Store(cfg) }, nil
}

// serve wraps a connection; its handshake has not begun yet.
func (t *TLS) serve(nc net.Conn) net.Conn { return tls.Server(nc, t.now.Load()) }

// shakeHands completes the handshake of an encrypted connection within the stall timeout.
func (c *conn) shakeHands() error {
	encrypted, ok := c.nc.(*tls.Conn)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.server.base, c.server.options.StallTimeout)
	defer cancel()
	if err := encrypted.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("TLS handshake: %w", err)
	}
	return c.readSubject(encrypted.ConnectionState())
}

// readSubject notes whose certificate a client has shown. One that nobody has verified tells nothing.
func (c *conn) readSubject(state tls.ConnectionState) error {
	if len(state.VerifiedChains) == 0 {
		return nil
	}
	var names pkix.RDNSequence // of Subject alone the order would be lost
	if _, err := asn1.Unmarshal(state.PeerCertificates[0].RawSubject, &names); err != nil {
		return fmt.Errorf("read the subject of a certificate: %w", err)
	}
	c.client.Subject = names.String()
	return nil
}
