package config

import "strings"

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
