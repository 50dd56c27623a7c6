package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"oxbow/internal/backend/remote"
	"oxbow/internal/deployment"
)

// reachTime bounds how long a command waits for a deployment's first answer.
const reachTime = 10 * time.Second

// openDeployment opens a deployment and its members, and makes sure that it answers. The function that it returns closes both.
func openDeployment(ctx context.Context, uri string) (*deployment.Deployment, func(), error) {
	whole, err := remote.OpenNamed("deployment", uri, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, fmt.Errorf("connect to %s: %w", withoutPassword(uri), err)
	}
	d := deployment.Of("deployment", whole)
	closeAll := func() {
		d.Close()
		whole.Close()
	}
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	if _, err := d.Members(ctx); err != nil {
		closeAll()
		return nil, nil, fmt.Errorf("reach %s: %w", withoutPassword(uri), err)
	}
	return d, closeAll, nil
}
