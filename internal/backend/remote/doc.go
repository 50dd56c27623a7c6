// Package remote is a backend on a real MongoDB deployment: a replica set, a sharded cluster or one server, by URI.
//
// It uses the official driver's topology and connection pool and nothing above them: a command's bytes go out as they are,
// the reply's bytes come back as they are, on the pool's connections but not through the driver's reading and writing. The driver's sessions,
// retries and command helpers stay out, since the caller's lsid and txnNumber pass through. Those parts of the driver are officially unstable;
// this package alone imports them (docs/decisions/0004-driver-2.8.md).
//
// Invariants: an error wraps backend.ErrUnavailable only if no byte of the command was sent; a cursor's getMore goes to the
// server that opened it, a statement of a transaction to the router that runs it; no command waits without end for a server or a
// connection; no credential of a URI is in an error.
//
// cmd and tests open it; everything else sees a backend.Backend.
package remote
