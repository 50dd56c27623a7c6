package oxbow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/admin"
	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/maintain"
	"oxbow/internal/observe"
)

// serveHTTP serves operators' tools, where the configuration has an address for them.
func (g *Gateway) serveHTTP(metrics *observe.Metrics) {
	if g.doors.http == nil {
		return
	}
	g.admin = admin.Serve(g.doors.http, admin.Options{Metrics: metrics.Gatherer(), Ready: g.ready, Jobs: g.jobsJSON, Token: g.doors.token, Log: g.log})
	g.log.Info("serving HTTP", "address", g.admin.Addr().String())
}

// HTTPAddr is the address that metrics are served on, nil where they are not.
func (g *Gateway) HTTPAddr() net.Addr {
	if g.admin == nil {
		return nil
	}
	return g.admin.Addr()
}

// jobsJSON gives the jobs as they stand.
func (g *Gateway) jobsJSON(ctx context.Context) (any, error) {
	list, err := g.jobs.statuses(ctx)
	if list == nil {
		list = []maintain.Status{}
	}
	return list, err
}

// readyTimeout is how long a backend may take to answer that it's there.
const readyTimeout = 2 * time.Second

// ready asks every backend whether it is there. A gateway that stops, or has no lease on a shared catalog, is not ready, so that nobody new is sent to it.
func (g *Gateway) ready(ctx context.Context) error {
	if g.stopping.Load() {
		return errors.New("the gateway is stopping")
	}
	if err := g.catalog.Check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	body := bson.Document(bsoncore.NewDocumentBuilder().AppendInt32("ping", 1).AppendString("$db", "admin").Build())
	for _, name := range slices.Sorted(maps.Keys(g.backends)) {
		if _, err := g.backends[name].Run(ctx, &backend.Request{Body: body}); err != nil {
			return fmt.Errorf("backend %s: %w", name, err)
		}
	}
	return nil
}

// minToken is the least length of a token: shorter ones can be guessed.
const minToken = 16

func readToken(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the token of HTTP: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < minToken {
		return "", fmt.Errorf("read the token of HTTP: %s has fewer than %d characters", file, minToken)
	}
	return token, nil
}
