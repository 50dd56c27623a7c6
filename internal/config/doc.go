// Package config reads Oxbow's YAML file into values that are checked: listen address, backends, databases and the layouts
// of collections. Every error names file, line, column and key.
//
// It opens nothing that the file names (no folder, no connection) and keeps no state: what a running gateway may change is the
// answer of Diff, and catalog applies it.
//
// Invariants: a Config that Parse returned is valid; keys that are planned but not built are refused by name; no key is
// ignored; bad input never panics.
//
// cmd/oxbow, the Go library and catalog import it.
package config
