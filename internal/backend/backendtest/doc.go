// Package backendtest holds the contract of backend.Backend as tests that run against every implementation.
//
// Most of it is data: testdata/*.txt has commands and the replies that are expected of any MongoDB (see script.go for the
// format). What data cannot say (document sequences, sizes, closing, ownership of bytes) is in Go.
//
// It is imported by tests only.
package backendtest
