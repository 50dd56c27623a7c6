// Package exec runs plans: it scatters commands over backends, merges ordered streams, groups writes, and does the half of
// an aggregation that the gateway does itself.
//
// It decides nothing about routes (plan) and keeps nothing between commands: a stream that outlives its command is a cursor's
// content and is kept by cursor.
//
// Invariants: memory is bounded by batches, never by results; a failed target fails the command, with the backend's error; a
// stream closes its backends' cursors; contexts end the work everywhere; what a client's session says to deployments, and they to it, goes through
// one Exchange a command.
//
// Only command imports it.
package exec
