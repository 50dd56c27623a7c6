package engine

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// A compaction that gives way to a drop is everyday work; any other failure is an error for an operator to see.
func TestBackgroundErrors(t *testing.T) {
	var log strings.Builder
	h := &health{log: slog.New(slog.NewTextHandler(&log, nil))}
	h.listener().BackgroundError(errors.Join(pebble.ErrCancelledCompaction, errors.New("by a drop")))
	if log.Len() > 0 {
		t.Errorf("a cancelled compaction is logged: %s", log.String())
	}
	h.listener().BackgroundError(errors.New("disk on fire"))
	if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "disk on fire") {
		t.Errorf("a failure is logged as %q", log.String())
	}
}
