// Package operators tests what operators set up against commands that read large collections for want of an index: the guard at the gateway, policies that
// kill where such a command runs, and what observe finds on a deployment. See README.md.
//
// It holds tests only; nothing imports it.
package operators
