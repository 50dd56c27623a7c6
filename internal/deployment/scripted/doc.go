// Package scripted has scripted replica sets and sharded clusters: members that tell of themselves, of their set and of their load what a test wants
// to hear, in memory (on virtual time, where wanted) or served at an address. Commands on data go to a backend that the test gives, such as an embedded engine.
//
// It replicates and elects nothing: that is what test/failures is for.
//
// Only tests import it.
package scripted
