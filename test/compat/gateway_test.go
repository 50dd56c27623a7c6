package compat

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"oxbow"
	"oxbow/internal/auth"
)

// layout is one way to keep a collection. The database that holds collections of this layout bears its name.
type layout struct {
	name  string
	time  bool
	hash  bool
	twoOf bool // spread over two backends
}

var layouts = []layout{
	{name: "plain"},
	{name: "bytime", time: true},
	{name: "byhash", hash: true},
	{name: "byboth", time: true, hash: true},
	{name: "bytime_two", time: true, twoOf: true},
	{name: "byhash_two", hash: true, twoOf: true},
	{name: "byboth_two", time: true, hash: true, twoOf: true},
}

// hashCount is the number of slots of the layouts by hash.
const hashCount = 16

// All clients log in as this user.
const user, password = "tester", "p@ss: wörd/?"

// configuration is the YAML of a gateway with all layouts: flights and quakes are read by all clients, and each has a
// collection of flights of its own.
func configuration(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "users:\n  %s@admin:\n    roles: [root]\n", user)
	for _, m := range auth.Mechanisms() {
		c, err := auth.NewCredential(m, user, password)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "    %s: %q\n", strings.ToLower(string(m)), c)
	}
	fmt.Fprintf(&b, "backends:\n  a: {embedded: %s/a}\n  b: {embedded: %s/b}\ndatabases: {\"*\": a}\ncollections:\n", dir, dir)
	for _, l := range layouts {
		if !l.time && !l.hash {
			continue
		}
		for _, name := range append([]string{"flights"}, ownCollections()...) {
			l.write(&b, name, "{field: date, every: day}", "origin")
		}
		l.write(&b, "quakes", "{field: time, unit: ms, every: day, zone: Asia/Shanghai}", "net")
	}
	return b.String()
}

// write appends one collection's entry.
func (l layout) write(b *strings.Builder, collection, time, hash string) {
	fmt.Fprintf(b, "  %s.%s:\n", l.name, collection)
	if l.time {
		fmt.Fprintf(b, "    time: %s\n", time)
	}
	if l.hash {
		fmt.Fprintf(b, "    hash: {field: %s, count: %d}\n", hash, hashCount)
	}
	if l.twoOf {
		b.WriteString("    over: [a, b]\n")
	}
}

// serve opens a gateway with all layouts, which is closed when the test ends.
func serve(t *testing.T) *oxbow.Gateway {
	t.Helper()
	g, err := oxbow.Open(t.Context(), oxbow.Options{Config: []byte(configuration(t, t.TempDir())), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := g.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return g
}
