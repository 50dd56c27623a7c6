// Package schedule says when long work may run: windows such as 22:00-08:00 of some days of the week, by the clock of a zone.
//
// It starts nothing and reads no clock: now is passed in.
//
// Invariants: a window comes once on each of its days, whatever the clock is changed by: it begins and ends with the first moment at which the clock shows its
// time, or a later one where it is skipped. So windows that meet on a clock meet in time.
//
// config, maintain and its jobs import it.
package schedule
