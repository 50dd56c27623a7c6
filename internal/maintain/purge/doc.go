// Package purge takes documents away that have to go: by dropping whole collections where they can be, else by deletes at a rate that nobody feels.
// Each way is a Strategy, and each Strategy a maintain.Job: New makes it. Look finds out what a collection is like, and what each Strategy would take.
//
// It is not aware of windows, leases and throttles: who runs a job is. It speaks MongoDB's commands to backends, so it works on any server.
//
// Invariants: what goes matches the Predicate when it goes, since every delete that is sent carries the whole of it; no delete is sent whose plan is a
// collection scan, nor one that examines more than MaxRatio documents for one that goes; a delete is acknowledged by a majority before the next one is
// sent by the same worker; with an Archive a document is there, synced, before its delete is sent, and goes only if it is still the same; a
// step done again takes nothing away that would have stayed.
//
// cmd, bench and the root package import it.
package purge
