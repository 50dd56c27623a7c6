package command

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"syscall"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/memory"
)

// serverStatus gives the counters of the process (https://www.mongodb.com/docs/manual/reference/command/serverStatus/). A field of
// the request that is 0 or false leaves the section of that name out. Whole numbers are integers, uptime too.
func (t *Table) serverStatus(_ context.Context, req *Request, reply *Reply) error {
	now := t.deps.Now()
	up := now.Sub(t.deps.Server.Started)
	dst := bsoncore.AppendStringElement(reply.Elements, "host", t.deps.Server.Host)
	dst = bsoncore.AppendStringElement(dst, "version", t.version())
	dst = bsoncore.AppendStringElement(dst, "process", "mongos")
	dst = bsoncore.AppendInt64Element(dst, "pid", int64(os.Getpid()))
	dst = bsoncore.AppendInt64Element(dst, "uptime", seconds(up))
	dst = bsoncore.AppendInt64Element(dst, "uptimeMillis", up.Milliseconds())
	dst = bsoncore.AppendInt64Element(dst, "uptimeEstimate", seconds(up))
	dst = bsoncore.AppendDateTimeElement(dst, "localTime", now.UnixMilli())
	for _, s := range t.statusSections() {
		if v, ok := bson.Get(req.Body, s.Name); ok && !isTrue(v) {
			continue
		}
		var at int32
		at, dst = bsoncore.AppendDocumentElementStart(dst, s.Name)
		dst = s.Append(dst)
		dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	}
	reply.Elements = dst
	return nil
}

func (t *Table) statusSections() []StatusSection {
	own := []StatusSection{
		{"asserts", t.statusAsserts},
		{"connections", t.statusConnections},
		{"extra_info", appendUsage},
		{"logicalSessionRecordCache", t.statusSessions},
		{"mem", t.statusMemory},
		{"metrics", t.statusMetrics},
		{"network", t.statusNetwork},
		{"opcounters", t.statusOpcounters},
	}
	return append(own, t.deps.Sections...)
}

// figure is one number of a section.
type figure struct {
	name  string
	value int64
}

func appendFigures(dst []byte, figures ...figure) []byte {
	for _, f := range figures {
		dst = bsoncore.AppendInt64Element(dst, f.name, f.value)
	}
	return dst
}

func (t *Table) statusAsserts(dst []byte) []byte {
	c := t.deps.Counters
	return appendFigures(dst, figure{"regular", 0}, figure{"warning", 0}, figure{"msg", c.Panics.Load()},
		figure{"user", c.UserErrors.Load()}, figure{"rollovers", 0})
}

func (t *Table) statusConnections(dst []byte) []byte {
	c := t.deps.Counters
	current := c.ConnectionsCurrent.Load()
	return appendFigures(dst, figure{"current", current}, figure{"available", max(0, c.ConnectionsMax.Load()-current)},
		figure{"totalCreated", c.ConnectionsTotal.Load()}, figure{"rejected", c.ConnectionsRejected.Load()},
		figure{"active", int64(t.operations.Running())})
}

func (t *Table) statusSessions(dst []byte) []byte {
	return appendFigures(dst, figure{"activeSessionsCount", int64(t.deps.Sessions.Len())})
}

func (t *Table) statusMetrics(dst []byte) []byte {
	infos, totals := t.deps.Cursors.List()
	pinned, noTimeout := int64(0), int64(0)
	for _, i := range infos {
		if i.InUse {
			pinned++
		}
		if i.NoTimeout {
			noTimeout++
		}
	}
	at, dst := bsoncore.AppendDocumentElementStart(dst, "cursor")
	dst = appendFigures(dst, figure{"timedOut", totals.TimedOut}, figure{"totalOpened", totals.Opened}, figure{"killed", totals.Killed})
	open, dst := bsoncore.AppendDocumentElementStart(dst, "open")
	dst = appendFigures(dst, figure{"noTimeout", noTimeout}, figure{"pinned", pinned}, figure{"total", int64(len(infos))})
	dst, _ = bsoncore.AppendDocumentEnd(dst, open)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

func (t *Table) statusNetwork(dst []byte) []byte {
	c := t.deps.Counters
	return appendFigures(dst, figure{"bytesIn", c.BytesIn.Load()}, figure{"bytesOut", c.BytesOut.Load()},
		figure{"physicalBytesIn", c.PhysicalIn.Load()}, figure{"physicalBytesOut", c.PhysicalOut.Load()},
		figure{"numRequests", c.Requests.Load()}, figure{"numBadMessages", c.BadMessages.Load()})
}

func (t *Table) statusOpcounters(dst []byte) []byte {
	for _, k := range [...]kind{kindInsert, kindQuery, kindUpdate, kindRemove, kindGetMore, kindCommand} {
		dst = appendFigures(dst, figure{kindNames[k].counter, t.deps.Counters.byKind[k].Load()})
	}
	return dst
}

// statusMemory appends the process's memory in MiB, and the budget of what clients can make it hold, in bytes.
func (t *Table) statusMemory(dst []byte) []byte {
	virtual, resident := processMemory()
	dst = bsoncore.AppendInt32Element(dst, "bits", strconv.IntSize)
	dst = bsoncore.AppendInt32Element(dst, "resident", int32(resident>>20))
	dst = bsoncore.AppendInt32Element(dst, "virtual", int32(virtual>>20))
	dst = bsoncore.AppendBooleanElement(dst, "supported", resident > 0)
	f := t.deps.Memory.Figures()
	at, dst := bsoncore.AppendDocumentElementStart(dst, "budget")
	dst = appendFigures(dst, figure{"limitBytes", f.Limit}, figure{"usedBytes", f.Used}, figure{"peakBytes", f.Peak})
	for u, n := range f.By {
		dst = bsoncore.AppendInt64Element(dst, memory.Use(u).String()+"Bytes", n)
	}
	dst = appendFigures(dst, figure{"refused", f.Refused}, figure{"waited", f.Waited})
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// processMemory is the size of this process in bytes, or zeros where /proc does not tell.
func processMemory() (virtual, resident int64) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, 0
	}
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0, 0
	}
	page := int64(os.Getpagesize())
	v, _ := strconv.ParseInt(string(fields[0]), 10, 64)
	r, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	return v * page, r * page
}

// appendUsage appends what the system counted for this process; times in microseconds.
func appendUsage(dst []byte) []byte {
	dst = bsoncore.AppendStringElement(dst, "note", "fields vary by platform")
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return dst
	}
	return appendFigures(dst, figure{"user_time_us", u.Utime.Nano() / 1000}, figure{"system_time_us", u.Stime.Nano() / 1000},
		figure{"maximum_resident_set_kb", int64(u.Maxrss)}, figure{"page_faults", int64(u.Majflt)},
		figure{"page_reclaims", int64(u.Minflt)}, figure{"input_blocks", int64(u.Inblock)}, figure{"output_blocks", int64(u.Oublock)},
		figure{"voluntary_context_switches", int64(u.Nvcsw)}, figure{"involuntary_context_switches", int64(u.Nivcsw)})
}
