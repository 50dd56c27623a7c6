// Package access tests who may do what. See README.md.
//
// It holds tests only; nothing imports it.
package access
