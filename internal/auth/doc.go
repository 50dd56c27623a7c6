// Package auth knows users: their credentials, their roles, what a role allows, and the SCRAM conversation by which a client proves that it is one.
//
// It is not a gate: which command needs which action is the command table's business, and how a conversation travels is server's and command's.
// It stores nothing: users come from the configuration and from catalog's database, as values.
//
// Invariants: no password is kept, only salted credentials; a user that doesn't exist fails like one whose password is wrong, at the same step and
// with the same answer; a Set never changes, a new one takes its place; nothing here is written to a log.
//
// config, catalog, command and cmd/oxbow import it.
package auth
