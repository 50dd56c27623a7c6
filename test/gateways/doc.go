// Package gateways kills and stops gateways that share a catalog, and looks at what their clients saw and what they decided. See README.md.
//
// It holds tests only; nothing imports it.
package gateways
