// Package crash kills the server under writers and looks at what is left. See README.md.
//
// It holds tests only; nothing imports it.
package crash
