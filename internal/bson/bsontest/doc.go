// Package bsontest helps tests with BSON: documents from Extended JSON, and rapid generators of values that meet one another
// often (equal numbers of different types, strings with zero bytes, nested arrays).
//
// It is for tests only: no package outside of tests imports it.
package bsontest
