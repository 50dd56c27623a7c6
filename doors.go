package oxbow

import (
	"errors"
	"fmt"
	"net"

	"oxbow/internal/command"
	"oxbow/internal/config"
	"oxbow/internal/server"
)

// doors are where clients and operators come in.
type doors struct {
	clients net.Listener
	tls     *server.TLS  // nil: connections are not encrypted
	http    net.Listener // nil: not served
	token   string       // that HTTP asks for; "": none
}

// CheckFiles reads the files that a configuration names, certificates and a token, and says what is wrong with them.
func CheckFiles(cfg *config.Config) error { return new(doors).readFiles(cfg) }

func (d *doors) readFiles(cfg *config.Config) (err error) {
	if t := cfg.TLS; t != nil {
		if d.tls, err = server.LoadTLS(t.Certificate, t.Key, t.Clients); err != nil {
			return err
		}
	}
	if cfg.HTTP != nil && cfg.HTTP.TokenFile != "" {
		d.token, err = readToken(cfg.HTTP.TokenFile)
	}
	return err
}

// serverLimits and tableLimits are a configuration's limits for those who keep them.
func serverLimits(cfg *config.Config) server.Limits {
	return server.Limits{Connections: cfg.Limits.Connections, PerAddress: cfg.Limits.ConnectionsPerAddress}
}

func tableLimits(cfg *config.Config) command.Limits {
	l := cfg.Limits
	return command.Limits{
		ConnectionsPerUser: l.ConnectionsPerUser, MessagesPerConnection: l.MessagesPerConnection, MessagesPerUser: l.MessagesPerUser, Login: l.Login,
	}
}

// openDoors opens the listeners of a configuration, or none.
func openDoors(cfg *config.Config) (*doors, error) {
	d := &doors{}
	err := d.readFiles(cfg)
	if err != nil {
		return nil, err
	}
	if d.clients, err = server.Listen(cfg.Listen, cfg.Authorize); err != nil {
		return nil, err
	}
	if cfg.HTTP != nil {
		if d.http, err = net.Listen("tcp", cfg.HTTP.Listen); err != nil {
			return nil, errors.Join(fmt.Errorf("listen for HTTP: %w", err), d.close())
		}
	}
	return d, nil
}

// close closes the listeners that nobody serves yet.
func (d *doors) close() error {
	err := d.clients.Close()
	if d.http != nil {
		err = errors.Join(err, d.http.Close())
	}
	return err
}
