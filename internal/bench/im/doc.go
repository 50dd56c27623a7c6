// Package im puts the load of offline messages on a collection, through the official driver: messages come in for users who are away, each user logs in
// now and then, is given what has come meanwhile, and it is marked as read or deleted.
//
// It is not about messages on their way between users who are there: those need no database.
//
// Invariants: the load is open-loop, and logins are spread evenly, over time and over users; a user is never logged in twice at a time, so each message
// is delivered once; what was delivered is settled (marked or deleted) before the same user's next login.
//
// Only cmd/oxbow imports it.
package im
