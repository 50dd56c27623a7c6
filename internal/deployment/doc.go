// Package deployment is a deployment as operators' tools and jobs see it: its members, what each of them is, and a way to ask one of them alone.
// Commands for the deployment as a whole go through its backend.
//
// It is not on the request path, and routes nothing.
//
// Invariants: what a member is comes from the servers (hello, replSetGetConfig, replSetGetStatus, listShards), never from a URI; a question to one member
// is answered by that member; no credential is in an error.
//
// throttle, maintain's jobs and survey import it; cmd and the root package open it.
package deployment
