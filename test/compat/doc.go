// Package compat runs real clients against Oxbow. See README.md.
//
// It holds tests only; nothing imports it.
package compat
