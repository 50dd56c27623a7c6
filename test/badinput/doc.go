// Package badinput shows for each bad input that the project names what error it gets and what is still intact afterwards.
//
// It holds tests only; nothing imports it.
package badinput
