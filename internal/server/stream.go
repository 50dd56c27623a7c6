package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"oxbow/internal/command"
)

// errStalled ends a connection whose client stopped in the middle of a message, or of a reply.
var errStalled = errors.New("client stalled")

// stream is a connection with time limits while a message is under way.
type stream struct {
	nc       net.Conn
	stall    time.Duration
	counters *command.Counters
	until    time.Time // the end of the message that is being read; zero between messages
	limited  bool      // a read deadline is set
	buffers  net.Buffers
	writeBy  time.Time // the deadline of writes
}

// begin starts the limits of a message whose first bytes are there; by is when it must be there at the latest, zero where nothing else is said.
func (s *stream) begin(by time.Time) {
	s.until = time.Now().Add(messageTimeout)
	if !by.IsZero() && by.Before(s.until) {
		s.until = by
	}
}

// end lifts the limits.
func (s *stream) end() {
	s.until = time.Time{}
	if s.limited {
		s.limited = false
		s.nc.SetReadDeadline(time.Time{})
	}
}

// Read reads what is there. Within a message it waits for the stall timeout at most.
func (s *stream) Read(b []byte) (int, error) {
	if !s.until.IsZero() {
		deadline := time.Now().Add(s.stall)
		if s.until.Before(deadline) {
			deadline = s.until
		}
		s.limited = true
		if err := s.nc.SetReadDeadline(deadline); err != nil {
			return 0, err
		}
	}
	n, err := s.nc.Read(b)
	s.counters.PhysicalIn.Add(int64(n))
	return n, stalled(err)
}

// allowWrite gives the next write the stall timeout, or, where the last deadline is hardly older, that: a deadline for each write costs more than the write
// of a small reply should.
func (s *stream) allowWrite() error {
	now := time.Now()
	if left := s.writeBy.Sub(now); left > s.stall-s.stall/sparedDeadlines && left <= s.stall {
		return nil
	}
	s.writeBy = now.Add(s.stall)
	return s.nc.SetWriteDeadline(s.writeBy)
}

// sparedDeadlines is the part of the stall timeout, 1/n, by which a write may have less.
const sparedDeadlines = 16

func stalled(err error) error {
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%w: %w", errStalled, err)
	}
	return err
}

// isReset reports whether the client is gone without a word, which is as good as a word.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
