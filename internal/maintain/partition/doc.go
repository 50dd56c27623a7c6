// Package partition looks after partitions: it makes them ahead of time, hides, and drops them, one at a time, as
// retention decides, and remembers what it did and why.
//
// It decides nothing itself and knows no commands of clients. Nothing on the request path imports it.
//
// Invariants: it works through catalog and backend only; it stops, with a reason, when the clock can't be trusted; nothing is dropped
// that was not hidden for the collection's hold before.
package partition
