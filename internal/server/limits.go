package server

import (
	"net"
	"net/netip"

	"oxbow/internal/command"
	"oxbow/internal/mongoerr"
)

// Limits are how many connections there may be at once.
type Limits struct {
	Connections int // 0: 20,000
	PerAddress  int // of one IPv4 address or one /64 network of IPv6, which is what one client has; 0: no limit
}

const defaultConnections = 20_000

// filesForConnections is the part of the file descriptors that the process may have which connections may take, in tenths, as in MongoDB: the others
// are for the store's files and the backends' sockets.
const filesForConnections = 8

// SetLimits puts other limits in place. Connections that are open stay, whatever their number.
func (s *Server) SetLimits(l Limits) {
	if l.Connections == 0 {
		l.Connections = defaultConnections
	}
	if files := mostFiles() * filesForConnections / 10; files > 0 && l.Connections > files {
		s.log.Warn("fewer connections than limits allow, since the process may open few files", "connections", files, "limit", l.Connections)
		l.Connections = files
	}
	s.counters.ConnectionsMax.Store(int64(l.Connections))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.limits = l
}

// refusal is why a connection is turned away.
type refusal struct {
	limit command.Limit
	most  int
}

// refuse says whether one more connection from a place is too many, with so many there and so many from the same one.
func (l Limits) refuse(there int, from netip.Prefix, fromPlace int) *refusal {
	switch {
	case there >= l.Connections:
		return &refusal{command.LimitConnections, l.Connections}
	case l.PerAddress > 0 && from.IsValid() && fromPlace >= l.PerAddress:
		return &refusal{command.LimitAddress, l.PerAddress}
	}
	return nil
}

// err is what the client is told. MongoDB has no error for it: it closes the connection.
func (r *refusal) err() *mongoerr.Error {
	if r.limit == command.LimitAddress {
		return mongoerr.New(mongoerr.OperationFailed, "too many connections from this address: the limit is %d", r.most)
	}
	return mongoerr.New(mongoerr.OperationFailed, "too many connections: the limit is %d", r.most)
}

// placeOf is where a connection comes from; invalid on a Unix socket, whose clients are not told apart.
func placeOf(nc net.Conn) netip.Prefix {
	tcp, ok := nc.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	a := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // never fails for so few bits
	return p
}
