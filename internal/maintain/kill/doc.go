// Package kill is the job that looks after what a deployment runs: policies say which operations read a large collection for want of an index, and what
// becomes of them once they are older than a while: a line in the log, an alert, or their end.
//
// It finds no operation by itself and ends none: operation does both.
//
// Invariants: what is not known to read its whole collection is left alone, so is what no application has sent (replication, index builds, the server's
// and Oxbow's own) and what its comment allows to; a dry run ends nothing; what was done to which operation, and why, is kept.
//
// The commands and the root package construct it.
package kill
