// Package passthrough tests what reaches deployments behind a gateway, and what comes back. See README.md.
//
// It holds tests only; nothing imports it.
package passthrough
