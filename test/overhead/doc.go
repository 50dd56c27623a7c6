// Package overhead measures what a gateway in front of a remote backend costs: against a relay in its place that only copies bytes, and against the
// client talking straight to the backend. The README says how, and what is to come out.
//
// It is not a test of correctness, but for two: how many connections to the backend many clients need, and how much a forwarded command allocates.
//
// Invariants: relay, gateway and backend are processes of their own, so that no garbage collection counts for another; the client's messages are put
// together beforehand.
package overhead
