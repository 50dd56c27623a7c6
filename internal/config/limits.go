package config

import "time"

// Limits bound what clients may take of a gateway. 0: no limit.
type Limits struct {
	Connections           int // at once
	ConnectionsPerAddress int // of one IPv4 address, of one /64 network of IPv6
	ConnectionsPerUser    int // that have logged in as one user
	MessagesPerConnection int // a second
	MessagesPerUser       int // a second, over all connections that have logged in as the user
	// Login is how long a connection may go without a login or a hello, where clients have to log in.
	Login time.Duration
}

// DefaultLimits are those of a configuration that names none.
var DefaultLimits = Limits{Connections: 20_000, Login: time.Minute}

// The most that the keys of limits, and fanout, take.
const (
	mostConnections = 1_000_000
	mostMessages    = 10_000_000
	mostFanout      = 10_000
)

// readLimits reads the key limits:
//
//	limits:
//	  connections: {total: 20000, address: 2000, user: 500}
//	  messages: {connection: 5000, user: 20000}   # a second
//	  login: 1m
func (cfg *Config) readLimits(m *mapping) {
	n := m.take("limits")
	if n == nil {
		return
	}
	l := &cfg.Limits
	keys := openMapping(m.report, n, "limits")
	connections := openMapping(m.report, keys.take("connections"), "limits.connections")
	l.Connections = connections.whole("total", 1, mostConnections, l.Connections)
	l.ConnectionsPerAddress = connections.whole("address", 0, mostConnections, 0)
	l.ConnectionsPerUser = connections.whole("user", 0, mostConnections, 0)
	connections.close("total", "address", "user")
	messages := openMapping(m.report, keys.take("messages"), "limits.messages")
	l.MessagesPerConnection = messages.whole("connection", 0, mostMessages, 0)
	l.MessagesPerUser = messages.whole("user", 0, mostMessages, 0)
	messages.close("connection", "user")
	if text, at := keys.text("login"); at != nil {
		d, err := ParseDuration(text)
		if err != nil {
			keys.add(at, "limits.login", "%v", err)
		}
		l.Login = d
	}
	keys.close("connections", "messages", "login")
}
