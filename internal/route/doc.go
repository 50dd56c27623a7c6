// Package route decides, without I/O, where documents lie: the place of a document, and the partitions that a filter can
// concern with the reason for each exclusion. It owns layouts (hash slots, calendar cells) and partitions as values.
//
// It makes no partition and sends nothing: catalog and exec do.
//
// Invariants: routing is sound (design §4): the partition a document was placed in is in the route of every filter that
// matches it; unsure means all. Pure: no I/O, no goroutine, no clock.
//
// config, catalog, plan, command, retention, maintain and observe import it.
package route
