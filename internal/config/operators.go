package config

import (
	"net"
	"strconv"
	"time"

	"github.com/goccy/go-yaml/ast"

	"oxbow/internal/throttle"
)

// readSlow reads the key slow: a time such as 250ms, or 0 for none.
func (cfg *Config) readSlow(m *mapping) {
	text, n := m.text("slow")
	if n == nil {
		return
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d != 0 && d < time.Millisecond {
		m.add(n, "slow", "%q is not a time such as 250ms or 2s, of a millisecond at least, or 0 for none", text)
		return
	}
	cfg.Slow = d
}

// readThrottle reads the key throttle: where the jobs' pace is slowed and stopped, in terms as throttle.Parse reads them.
func (cfg *Config) readThrottle(m *mapping) {
	text, n := m.text("throttle")
	if n == nil {
		return
	}
	var err error
	if cfg.Throttle, err = throttle.Parse(text); err != nil {
		m.add(n, "throttle", "%s", err)
	}
}

// readHTTP reads the key http: an address, or {listen: an address, token: a file}. Beyond loopback it takes a token.
func (cfg *Config) readHTTP(m *mapping) {
	n := m.take("http")
	if n == nil {
		return
	}
	h := &HTTP{}
	at, path := n, "http"
	if text, plain := scalar(n); plain {
		h.Listen = text
	} else {
		keys := openMapping(m.report, n, "http")
		var node ast.Node
		h.Listen, node = keys.text("listen")
		h.TokenFile, _ = keys.text("token")
		keys.close("listen", "token")
		if node == nil {
			m.add(n, "http", "needs listen, as 127.0.0.1:8017")
			return
		}
		at, path = node, "http.listen"
	}
	host, port, err := net.SplitHostPort(h.Listen)
	p, wrong := strconv.Atoi(port)
	switch {
	case err != nil || wrong != nil || p < 0 || p > 65535:
		m.add(at, path, "%q is not host:port", h.Listen)
	case host != "" && host != "localhost" && net.ParseIP(host) == nil:
		m.add(at, path, "%q is not an IP address", host)
	case Beyond(h.Listen) && h.TokenFile == "":
		m.add(at, path, "%q is not a loopback address: beyond this machine HTTP takes a token, as {listen: …, token: FILE}", host)
	}
	cfg.HTTP = h
}
