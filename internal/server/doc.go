// Package server listens, and runs one goroutine a connection: read a message, have the command table answer it, write the reply.
//
// It is not a dispatcher: what a command means is command's business, and how a message is framed is wire's.
//
// Invariants: an idle connection holds no buffer beyond its reader's 512 bytes; bytes that are not the protocol end their own connection, with one
// log line, and nothing else; nothing listens beyond loopback where clients need not log in; every goroutine ends before Shutdown returns.
//
// Only the Go library imports it.
package server
