// Package memory bounds what clients can make the process hold at once: messages on their way in, replies on their way out, what queries
// gather, and what open cursors keep.
//
// It is not an allocator and measures nothing: a holder tells its Account what it is about to hold, in bytes, and is refused when there is no
// room. The store's block cache and memtables have limits of their own.
//
// Invariants: pure (no I/O, no goroutine, no clock); a nil Budget, and the zero Account, refuse nothing and count nothing; what a holder keeps
// below Small costs no atomic operation; when all accounts are closed, nothing is reserved.
//
// Every room that holds something for clients may import it.
package memory
