// Package bench puts the load of an operations-log store on a collection, through the official driver, and measures what its clients feel:
// inserts and updates at given rates, half of the updates by _id alone, the others by _id and time.
//
// It is not a fastest-possible benchmark: rates are asked for, and what is measured is whether they hold and how long each call took.
//
// Invariants: the load is open-loop, so a call's latency counts from when it was meant to begin, and a server that stalls shows as latency and as
// calls not begun; every document is counted once, as stored, changed, unmatched or failed.
//
// What other loads share with it (pacers, crews, tallies, tables) is exported for bench/im and bench/ways. Only these and cmd/oxbow import it.
package bench
