// Package maintain runs jobs: long work in small repeatable steps, with a checkpoint a step, a lease, a pace and a window. Each kind of job has a
// room below it: partition, purge, kill.
//
// It is not aware of what a job does, and nothing on the request path imports it.
//
// Invariants: a job runs under one lease at a time, and what it writes down carries the lease's token, so that who lost the lease writes nothing more;
// a checkpoint is stored before the next step begins; no step begins outside a job's windows, while it is paused, or while its throttle says stop; the reason
// for not running can be read everywhere.
package maintain
