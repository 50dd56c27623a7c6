// Package failures tests what clients see, and what is stored, when the deployments behind gateways fail under load. See README.md.
//
// It holds tests only; nothing imports it.
package failures
