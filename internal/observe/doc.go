// Package observe keeps what a gateway measures of itself and shows it as Prometheus metrics.
//
// It is not a place of decisions: nothing reads its figures back. Figures that others keep anyway (connections, cursors, memory, partitions) are
// read from them when they are asked for; it counts by itself only what nobody else does.
//
// Invariants: the number of series is bounded whatever clients send; noting a command allocates nothing and takes no lock; no value of a client's
// document and no credential is ever a label.
//
// Only the Go library imports it.
package observe
