// Package survey looks at a deployment and says what is wrong with it: Gather asks, reading only and little, Find judges the figures alone, and each
// finding names its evidence and the command that mends it. It is what `oxbow observe` prints, as text, JSON or a page.
//
// It changes nothing and keeps nothing.
//
// Invariants: Find does no I/O and reads no clock; a figure that a server does not report is not reported, never zero; what could not be asked is named
// (Survey.Missing) and ends nothing; no value of a client's document is in a finding, but times.
//
// Only the commands import it.
package survey
