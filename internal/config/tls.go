package config

import (
	"strings"

	"oxbow/internal/auth"
)

// readTLS reads the key tls. The files are opened when the gateway starts.
func (cfg *Config) readTLS(m *mapping) {
	n := m.take("tls")
	if n == nil {
		return
	}
	files := openMapping(m.report, n, "tls")
	t := &TLS{}
	t.Certificate, _ = files.text("certificate")
	t.Key, _ = files.text("key")
	t.Clients, _ = files.text("clients")
	for _, key := range []string{"certificate", "key"} {
		if !files.has(key) {
			m.add(n, "tls", "needs %s, a PEM file", key)
		}
	}
	files.close("certificate", "key", "clients")
	if strings.HasPrefix(cfg.Listen, "/") {
		m.add(n, "tls", "a Unix socket is not encrypted")
	}
	cfg.TLS = t
}

// checkCertificates refuses users who could never log in, since nobody is asked for a certificate.
func (cfg *Config) checkCertificates(m *mapping) {
	if cfg.TLS != nil && cfg.TLS.Clients != "" {
		return
	}
	for _, u := range cfg.Users {
		if u.Database == auth.External {
			m.add(m.valueOf("users"), "users."+u.UserName.String(), "needs tls with clients, the authorities of certificates")
		}
	}
}
