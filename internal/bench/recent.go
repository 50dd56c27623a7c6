package bench

import (
	"math/rand/v2"
	"sync"
)

// Recent remembers the documents inserted last, as far as updates need to know them.
type Recent[T any] struct {
	mu   sync.Mutex
	ring []T
	n    int64 // added so far
}

// NewRecent remembers a number of documents.
func NewRecent[T any](size int) *Recent[T] { return &Recent[T]{ring: make([]T, size)} }

// Add puts documents in place of the oldest.
func (r *Recent[T]) Add(all []T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range all {
		r.ring[r.n%int64(len(r.ring))] = w
		r.n++
	}
}

// Pick returns n different documents, fewer where there are not so many, evenly from all that are remembered.
func (r *Recent[T]) Pick(n int, random *rand.Rand) []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	have := int(min(r.n, int64(len(r.ring))))
	n = min(n, have)
	picked, seen := make([]T, 0, n), make(map[int]bool, n)
	for len(picked) < n {
		if i := random.IntN(have); !seen[i] {
			seen[i] = true
			picked = append(picked, r.ring[i])
		}
	}
	return picked
}
