package command

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/mongoerr"
)

// keptLines is the number of log lines that getLog gives (MongoDB keeps 1,024).
const keptLines = 1024

// RecentLog is a slog.Handler that keeps the last lines for getLog and passes everything on.
type RecentLog struct {
	next  slog.Handler
	attrs []slog.Attr
	lines *logLines
}

type logLines struct {
	mu struct {
		sync.Mutex
		ring  [keptLines]string
		total int64
	}
}

// NewRecentLog returns a handler in front of next.
func NewRecentLog(next slog.Handler) *RecentLog {
	return &RecentLog{next: next, lines: &logLines{}}
}

// Enabled is the next handler's.
func (l *RecentLog) Enabled(ctx context.Context, level slog.Level) bool {
	return l.next.Enabled(ctx, level)
}

// Handle keeps the record as one line of JSON in the form of MongoDB's structured log.
func (l *RecentLog) Handle(ctx context.Context, r slog.Record) error {
	attrs := make(map[string]any, r.NumAttrs()+len(l.attrs))
	for _, a := range l.attrs {
		attrs[a.Key] = a.Value.String()
	}
	r.Attrs(func(a slog.Attr) bool {
		attrs[a.Key] = a.Value.String()
		return true
	})
	line, err := json.Marshal(map[string]any{
		"t": map[string]string{"$date": r.Time.UTC().Format("2006-01-02T15:04:05.000+00:00")},
		"s": severity(r.Level), "c": "-", "id": 0, "ctx": "oxbow", "msg": r.Message, "attr": attrs,
	})
	if err == nil {
		l.lines.add(string(line))
	}
	return l.next.Handle(ctx, r)
}

func severity(level slog.Level) string {
	switch {
	case level >= slog.LevelError:
		return "E"
	case level >= slog.LevelWarn:
		return "W"
	case level >= slog.LevelInfo:
		return "I"
	}
	return "D1"
}

// WithAttrs keeps the same lines.
func (l *RecentLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &RecentLog{next: l.next.WithAttrs(attrs), attrs: append(l.attrs[:len(l.attrs):len(l.attrs)], attrs...), lines: l.lines}
}

// WithGroup keeps the same lines; the group's name shows only in the next handler.
func (l *RecentLog) WithGroup(name string) slog.Handler {
	return &RecentLog{next: l.next.WithGroup(name), attrs: l.attrs, lines: l.lines}
}

func (l *logLines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.ring[l.mu.total%keptLines] = line
	l.mu.total++
}

// recent returns the kept lines, oldest first, and the number of all lines ever written.
func (l *logLines) recent() ([]string, int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := max(0, l.mu.total-keptLines)
	out := make([]string, 0, l.mu.total-first)
	for i := first; i < l.mu.total; i++ {
		out = append(out, l.mu.ring[i%keptLines])
	}
	return out, l.mu.total
}

// startupWarning is what getLog: "startupWarnings" tells while there are no users: shells show it on connecting.
const startupWarning = "Access control is not enabled: whoever reaches this port reads and writes everything. Oxbow listens on loopback only."

// getLog gives recent log lines: "*" names the logs, "global" is all lines, "startupWarnings" those an operator should see.
func (t *Table) getLog(_ context.Context, req *Request, reply *Reply) error {
	name, ok := req.Argument.StringValueOK()
	if !ok {
		return wrongType("getLog.getLog", req.Argument.Type, "string")
	}
	var lines []string
	var total int64
	switch name {
	case "*":
		reply.Elements = appendArray(reply.Elements, "names", []string{"global", "startupWarnings"})
		return nil
	case "global":
		if t.deps.RecentLog != nil {
			lines, total = t.deps.RecentLog.lines.recent()
		}
	case "startupWarnings":
		lines, total = []string{t.warningLine()}, 1
	default:
		return mongoerr.New(mongoerr.OperationFailed, "no RamLog named: %s", name)
	}
	dst := bsoncore.AppendInt64Element(reply.Elements, "totalLinesWritten", total)
	reply.Elements = appendArray(dst, "log", lines)
	return nil
}

// warningLine is the startup warning as a line of MongoDB's structured log, the form that shells parse.
func (t *Table) warningLine() string {
	started := t.deps.Server.Started.UTC().Format(time.RFC3339Nano)
	line, _ := json.Marshal(map[string]any{
		"t": map[string]string{"$date": started}, "s": "W", "c": "CONTROL", "id": 22120, "ctx": "main",
		"msg": startupWarning, "tags": []string{"startupWarnings"},
	})
	return string(line)
}
