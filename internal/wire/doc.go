// Package wire frames MongoDB's wire protocol: message headers, OP_MSG with both section kinds and checksums, OP_COMPRESSED,
// the OP_QUERY of a first handshake and its OP_REPLY (https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/).
//
// It is not a server: it opens no socket, knows no command and sets no deadline.
//
// Invariants: no bytes, however wrong, make it panic or allocate more than twice what arrived plus 64 KiB, a compressed
// message's output excepted, which is bounded by MaxMessageSize; a document that comes out of Parse has passed bson.Validate.
//
// Ownership: a Message owns its buffer, and every document of it aliases that buffer. Whoever got the Message from a Reader calls Release
// once, when nothing refers to those documents any more; what must live longer is copied before.
//
// Only server imports it.
package wire
