// Package load brings documents from files into a collection: Extended JSON lines and CSV, in batches, through any MongoDB driver's
// server.
//
// It is not a dump format and does not know layouts: the server behind the URI places the documents.
//
// Invariants: a document is in a batch at most once; an error names the line it came from; after a stop the line to go on from
// is known, and nothing before it is missing.
//
// Only cmd/oxbow imports it.
package load
