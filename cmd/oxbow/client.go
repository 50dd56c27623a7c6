package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow/internal/statement"
)

// defaultURI is where oxbow serve listens without a configuration.
const defaultURI = "mongodb://127.0.0.1:27017"

// connect connects to a deployment and makes sure that it answers.
func connect(ctx context.Context, uri string) (*mongo.Client, error) {
	o := options.Client().ApplyURI(uri).SetAppName("oxbow").SetServerSelectionTimeout(10 * time.Second)
	// A driver that disconnects while it waits for the server's news, as it does by default, sometimes waits for all of their 10 seconds.
	o.SetServerMonitoringMode(options.ServerMonitoringModePoll)
	client, err := mongo.Connect(o)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", withoutPassword(uri), err)
	}
	if err := client.Ping(ctx, nil); err != nil {
		client.Disconnect(ctx)
		return nil, fmt.Errorf("reach %s: %w", withoutPassword(uri), err)
	}
	return client, nil
}

// withoutPassword leaves the user and the password out of a connection string, for messages. It cuts at the last @, also where that is behind the
// hosts: a password whose special characters were not escaped must not be shown either.
func withoutPassword(uri string) string {
	scheme, rest, ok := strings.Cut(uri, "://")
	at := strings.LastIndexByte(rest, '@')
	if !ok || at < 0 {
		return uri
	}
	return scheme + "://" + rest[at+1:]
}

// namespace splits "db.collection".
func namespace(ns string) (database, collection string, err error) {
	database, collection, ok := strings.Cut(ns, ".")
	if !ok || database == "" || collection == "" {
		return "", "", fmt.Errorf("%q is no namespace: write DATABASE.COLLECTION", ns)
	}
	err = statement.CheckDatabase(database)
	if err == nil {
		err = statement.CheckCollection(database, collection)
	}
	if err != nil {
		return "", "", fmt.Errorf("%q is no namespace: %w", ns, err)
	}
	return database, collection, nil
}

// openCollection connects to a deployment for one collection; the caller disconnects its client.
func openCollection(ctx context.Context, uri, ns string) (*mongo.Collection, error) {
	database, collection, err := namespace(ns)
	if err != nil {
		return nil, err
	}
	client, err := connect(ctx, uri)
	if err != nil {
		return nil, err
	}
	return client.Database(database).Collection(collection), nil
}
