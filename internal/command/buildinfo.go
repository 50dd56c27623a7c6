package command

import (
	"context"
	"runtime"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
)

// buildInfo answers with the version of MongoDB that Oxbow behaves as, which drivers and shells decide by, and with its own under "oxbow".
func (t *Table) buildInfo(_ context.Context, _ *Request, reply *Reply) error {
	version := t.version()
	dst := bsoncore.AppendStringElement(reply.Elements, "version", version)
	dst = bsoncore.AppendStringElement(dst, "gitVersion", t.deps.Server.Build)
	dst = appendArray(dst, "modules", nil)
	dst = bsoncore.AppendStringElement(dst, "allocator", "go")
	dst = bsoncore.AppendStringElement(dst, "javascriptEngine", "none")
	dst = bsoncore.AppendStringElement(dst, "sysInfo", "deprecated")
	dst = appendVersionArray(dst, version)
	at, dst := bsoncore.AppendDocumentElementStart(dst, "buildEnvironment")
	dst = bsoncore.AppendStringElement(dst, "cc", runtime.Version())
	dst = bsoncore.AppendStringElement(dst, "target_arch", runtime.GOARCH)
	dst = bsoncore.AppendStringElement(dst, "target_os", runtime.GOOS)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	dst = bsoncore.AppendInt32Element(dst, "bits", strconv.IntSize)
	dst = bsoncore.AppendBooleanElement(dst, "debug", false)
	dst = bsoncore.AppendInt32Element(dst, "maxBsonObjectSize", bson.MaxDocumentSize)
	at, dst = bsoncore.AppendDocumentElementStart(dst, "oxbow")
	dst = bsoncore.AppendStringElement(dst, "version", t.deps.Server.Build)
	reply.Elements, _ = bsoncore.AppendDocumentEnd(dst, at)
	return nil
}

// appendVersionArray appends "7.0.14" as [7, 0, 14, 0].
func appendVersionArray(dst []byte, version string) []byte {
	at, dst := bsoncore.AppendArrayElementStart(dst, "versionArray")
	parts := strings.SplitN(version, ".", 3)
	for i := range 4 {
		n := 0
		if i < len(parts) {
			n, _ = strconv.Atoi(parts[i])
		}
		dst = bsoncore.AppendInt32Element(dst, index(i), int32(n))
	}
	dst, _ = bsoncore.AppendArrayEnd(dst, at)
	return dst
}
