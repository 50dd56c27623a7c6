// Package command is the one table of commands: it takes a request apart, checks what all commands share (database, session, API version, time
// limit, transactions), finds the handler by the name of the first key, and puts the envelope around its answer.
//
// It is not a server: it knows no socket and no frame. Every command that it answers has a file of its own: Table's own answer from the gateway
// itself, those of Data go to the backends, planned where a layout is concerned.
//
// Invariants: whatever a client sent, the reply is a document with ok; a handler's error becomes MongoDB's error there and nowhere else; a
// request's bytes are not kept after its handler returned; a running command is in Operations until it has answered.
//
// server and observe import it.
package command
