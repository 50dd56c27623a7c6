// Package admin serves HTTP to operators and their tools: metrics, health and readiness.
//
// It is not on the way of any client's command, and changes nothing.
//
// Invariants: beyond loopback nothing but health and readiness is answered without the token; a slow or silent client is let go; the token shows in no
// answer and no log.
//
// Only the Go library imports it.
package admin
