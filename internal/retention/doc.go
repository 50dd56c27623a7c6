// Package retention decides, from now and the partitions of a collection, which partitions to make ahead, to hide and to drop.
//
// It does none of it (maintain does) and reads no clock.
//
// Invariants: pure; nothing is hidden whose end is after now − keep, nothing dropped that was not hidden for hold; a clock that jumped or more
// due at once than a limit gives a stop with a reason, and then nothing is due.
//
// Only maintain/partition imports it.
package retention
