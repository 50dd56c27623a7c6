// Package backend is the one interface below the router: a command for physical namespaces in, a reply out, as a MongoDB
// server would answer it. The contract tests in backendtest run against every implementation.
//
// It is not aware of collections, layouts or partitions: a backend knows physical names only.
//
// Invariants: a reply with ok: 0 is a reply, not a Go error; a Go error means that no reply came and that the command may
// or may not have run; a Request's bytes are neither kept nor changed after Run returns.
//
// statement, plan, exec, command, catalog, maintain and server use it; the implementations are embedded (the engine) and remote (a server by URI).
package backend
