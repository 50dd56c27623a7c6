// Package capped runs a server as a process of its own in a control group that limits its memory, page cache included, on a folder that can be put back to
// what it was: what a measurement needs whose data must not fit into memory.
//
// It knows nothing of what is measured, nor of the server but that its log says where it serves.
//
// Invariants: a server that could not be limited says why; no group and no process is left behind by Stop; what lies in a restored folder is in no cache.
//
// Only cmd/oxbow imports it.
package capped
