package engine

import (
	"bytes"
	"slices"
)

// keyList gathers keys. Its memory is kept.
type keyList struct {
	buf    []byte
	ends   []int // where each key ends in buf
	sorted [][]byte
}

func (l *keyList) add(key []byte) {
	l.buf = append(l.buf, key...)
	l.ends = append(l.ends, len(l.buf))
}

// inOrder returns the keys, ascending, good until the next add.
func (l *keyList) inOrder() [][]byte {
	l.sorted = l.sorted[:0]
	start := 0
	for _, end := range l.ends {
		l.sorted = append(l.sorted, l.buf[start:end:end])
		start = end
	}
	if !slices.IsSortedFunc(l.sorted, bytes.Compare) {
		slices.SortFunc(l.sorted, bytes.Compare)
	}
	return l.sorted
}

func (l *keyList) reset() {
	l.buf, l.ends = l.buf[:0], l.ends[:0]
	clear(l.sorted)
}

// prepareGone empties the lists of removed entries, one for each of n indexes.
func (w *writer) prepareGone(n int) {
	for len(w.gone) < n {
		w.gone = append(w.gone, keyList{})
	}
	w.gone = w.gone[:n]
	for i := range w.gone {
		w.gone[i].reset()
	}
}
