package config

import (
	"cmp"

	"github.com/goccy/go-yaml/ast"

	"oxbow/internal/bson"
)

// Guard says what becomes of commands on a collection that no index serves, by kind of command. The zero value guards nothing.
type Guard struct {
	Documents  int64         // a command that would read more is concerned
	Preference bson.Document // where those go that are sent elsewhere, as $readPreference; nil: none are

	actions [len(guardedCommands)]GuardAction
}

// GuardAction is what becomes of a command that no index serves.
type GuardAction uint8

// The actions. GuardUnset leaves it to the entry above, and without one is GuardAllow.
const (
	GuardUnset  GuardAction = iota
	GuardAllow              // nothing is looked at
	GuardLog                // it runs, with a line in the log
	GuardRefuse             // it fails before it begins
	GuardSend               // a read goes where Guard.Preference says
)

var guardActions = []string{"allow", "log", "refuse", "send"}

// guardedCommands are the kinds by their keys, writes first, and the commands that they are.
var guardedCommands = [...]struct{ key, command string }{
	{"remove", "delete"}, {"update", "update"}, {"find", "find"}, {"count", "count"}, {"aggregate", "aggregate"},
	{"distinct", "distinct"},
}

// guardedWrites is how many of guardedCommands are writes, which have no action send and are refused where a guard says nothing of them.
const guardedWrites = 2

// DefaultGuarded is the number of documents above which a guard acts where it does not say.
const DefaultGuarded = 1_000_000

// String is the action's word in the file.
func (a GuardAction) String() string {
	if a == GuardUnset {
		return guardActions[0]
	}
	return guardActions[a-1]
}

// Looks reports whether a command has to be looked at at all.
func (a GuardAction) Looks() bool { return a > GuardAllow }

// Refuses reports whether the command fails.
func (a GuardAction) Refuses() bool { return a == GuardRefuse }

// Sends reports whether the command goes elsewhere.
func (a GuardAction) Sends() bool { return a == GuardSend }

// Of returns what becomes of a command by its name.
func (g *Guard) Of(command string) GuardAction {
	for i := range guardedCommands {
		if guardedCommands[i].command == command {
			return g.actions[i]
		}
	}
	return GuardAllow
}

// Guards reports whether a command may be guarded on any collection.
func (c *Config) Guards(command string) bool {
	if len(c.guards) == 0 {
		return false
	}
	for i := range guardedCommands {
		if guardedCommands[i].command == command {
			return c.guarded[i]
		}
	}
	return false
}

// Guard returns how a collection is guarded, with a layout or plain: each key as the collection's entry says, else its database's, else that of the
// database "*", else the one for all.
func (c *Config) Guard(database, collection string) Guard {
	var g Guard
	if len(c.guards) == 0 {
		return g
	}
	found := false
	for _, name := range [...]string{database + "." + collection, database, "*", ""} {
		level, ok := c.guards[name]
		if !ok {
			continue
		}
		found = true
		g.Documents = cmp.Or(g.Documents, level.Documents)
		if g.Preference == nil {
			g.Preference = level.Preference
		}
		for i := range g.actions {
			g.actions[i] = cmp.Or(g.actions[i], level.actions[i])
		}
	}
	if !found {
		return g
	}
	g.Documents = cmp.Or(g.Documents, DefaultGuarded)
	for i := range guardedWrites {
		g.actions[i] = cmp.Or(g.actions[i], GuardRefuse)
	}
	return g
}

// readGuard reads the key guard of an entry, of which the documents lie on some backends, and keeps it under a name.
func (cfg *Config) readGuard(m *mapping, name string, backends []string) {
	n := m.take("guard")
	if n == nil {
		return
	}
	var g Guard
	of := openMapping(m.report, n, m.child("guard"))
	g.Documents = int64(of.whole("documents", 1, 1<<50, 0))
	for i := range guardedCommands {
		options := guardActions
		if i < guardedWrites {
			options = guardActions[:len(guardActions)-1]
		}
		g.actions[i] = GuardAction(of.choice(guardedCommands[i].key, -1, options...) + 1)
	}
	at := of.valueOf("to")
	if to := of.take("to"); to != nil {
		g.Preference = readPreference(m.report, to, of.child("to"))
	}
	of.close("documents", "remove", "update", "find", "count", "aggregate", "distinct", "to")
	cfg.checkSent(of, &g, at, backends)
	if cfg.guards == nil {
		cfg.guards = map[string]Guard{}
	}
	cfg.guards[name] = g
	for i := range g.actions {
		cfg.guarded[i] = cfg.guarded[i] || i < guardedWrites || g.actions[i].Looks()
	}
}

// checkSent checks that reads which are sent elsewhere have somewhere to go.
func (cfg *Config) checkSent(m *mapping, g *Guard, to ast.Node, backends []string) {
	remote := false
	for _, b := range backends {
		known := cfg.Backend(b)
		remote = remote || known == nil || known.Embedded == nil // one that is not known has its own error
	}
	for i := range guardedCommands {
		key := guardedCommands[i].key
		switch {
		case g.actions[i] != GuardSend:
		case !remote:
			m.add(m.valueOf(key), m.child(key), "can't be send on an embedded backend: it has no secondaries")
		case to == nil:
			m.add(m.valueOf(key), m.child(key), "can't be send without to, which says where")
		}
	}
	if to != nil && !remote {
		m.add(to, m.child("to"), noSecondaries)
	}
}

// backendNames are the names of all backends.
func (cfg *Config) backendNames() []string {
	names := make([]string, len(cfg.Backends))
	for i := range cfg.Backends {
		names[i] = cfg.Backends[i].Name
	}
	return names
}
