// Package cursor keeps what a client holds open between commands: logical sessions and cursors, with their ids, owners and timeouts, and what
// sessions have seen of deployments' times.
//
// It is not an executor: what a cursor yields comes from a Content, and nothing here reads a collection.
//
// Invariants: a cursor id is Oxbow's own, never a backend's; a cursor is in use by one command at a time; no Content is called or
// closed under a lock; nothing expires but by Sweep, which is given the time.
//
// command and observe import it. exec's Content is what its cursors hold.
package cursor
