// Package embedded is the backend in this process: MongoDB's commands on physical namespaces, run by the engine and answered
// as a mongod 7.0 answers them.
//
// It parses nothing twice (statement gives commands their typed form, query compiles what is in them) and stores nothing
// (engine does); it knows no collections behind partitions, no users, no connections.
//
// Invariants: a failed command is a reply with ok: 0; a Go error means that the backend was closed before the command ran;
// documents go from the engine into the reply's bytes once; a cursor is held by one command at a time.
//
// cmd and tests open it; everything else sees a backend.Backend. It alone imports engine.
package embedded
