package remote

import "oxbow/internal/backend"

// Figures tells how the connections to the deployment are used.
func (b *Backend) Figures() backend.Figures {
	f := backend.Figures{
		Open: b.dialer.open(), Choosing: int(b.selecting.Load()),
		Refused: b.circuit.refused.Load(), Circuit: b.circuit.state().String(),
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.mu.lines {
		taken, waiting := l.figures()
		f.InUse += taken
		f.Lined += waiting
	}
	return f
}
