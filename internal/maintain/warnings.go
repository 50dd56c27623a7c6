package maintain

import (
	"log/slog"
	"sync"
)

// warnings are the errors of jobs as they were logged last, so that one that stays is logged once. Safe for concurrent use.
type warnings struct {
	log *slog.Logger

	mu   sync.Mutex
	last map[string]string // by job
}

func newWarnings(log *slog.Logger) *warnings { return &warnings{log: log, last: map[string]string{}} }

// tell logs an error of a job, "" for all of them, unless it was logged last time; nil: it is over.
func (w *warnings) tell(id, what string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	w.mu.Lock()
	before := w.last[id]
	w.last[id] = text
	w.mu.Unlock()
	if text != "" && text != before {
		w.log.Warn(what, "job", id, "error", err)
	}
}
