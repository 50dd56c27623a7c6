// Package equivalence runs the same random commands on a plain collection and on every layout of it, and compares what they answer. See README.md.
//
// It holds tests only; nothing imports it.
package equivalence
