package config

import (
	"net"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// readListen reads the address and returns the node that names it, or nil.
func (cfg *Config) readListen(m *mapping) ast.Node {
	text, n := m.text("listen")
	if n == nil {
		return nil
	}
	if strings.HasPrefix(text, "/") {
		cfg.Listen = text
		return nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		m.add(n, "listen", "%q is neither host:port, such as %s, nor the absolute path of a Unix socket", text, DefaultListen)
		return nil
	}
	if p, err := strconv.Atoi(port); err != nil || p < 0 || p > 65535 {
		m.add(n, "listen", "%q is not a port", port)
		return nil
	}
	if ip := net.ParseIP(host); ip == nil && host != "localhost" && host != "" {
		m.add(n, "listen", "%q is not an IP address; the empty host, 0.0.0.0 and :: are all of this machine", host)
		return nil
	}
	cfg.Listen = text
	return n
}

// checkBeyond refuses an address that other machines reach while anybody could use it.
func (cfg *Config) checkBeyond(m *mapping, at ast.Node) {
	if at == nil || !Beyond(cfg.Listen) {
		return
	}
	host, _, _ := net.SplitHostPort(cfg.Listen)
	switch {
	case len(cfg.Users) > 0 && !cfg.Authorize:
		m.add(at, "listen", "%q is not a loopback address: listening beyond this machine is refused with auth: off", host)
	case len(cfg.Users) == 0:
		m.add(at, "listen", "%q is not a loopback address: listening beyond this machine is refused until users are declared", host)
	}
}

// Beyond reports whether an address can be reached from other machines.
func Beyond(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil || host == "localhost" {
		return false // a Unix socket
	}
	ip := net.ParseIP(host)
	return ip == nil || !ip.IsLoopback()
}
