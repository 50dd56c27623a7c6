package command

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

func (t *Table) hostInfo(_ context.Context, _ *Request, reply *Reply) error {
	at, dst := bsoncore.AppendDocumentElementStart(reply.Elements, "system")
	dst = bsoncore.AppendDateTimeElement(dst, "currentTime", t.deps.Now().UnixMilli())
	dst = bsoncore.AppendStringElement(dst, "hostname", t.deps.Server.Host)
	dst = bsoncore.AppendInt32Element(dst, "cpuAddrSize", strconv.IntSize)
	dst = bsoncore.AppendInt64Element(dst, "memSizeMB", t.deps.Server.Memory>>20)
	dst = bsoncore.AppendInt64Element(dst, "memLimitMB", t.deps.Server.MemoryLimit>>20)
	dst = bsoncore.AppendInt32Element(dst, "numCores", int32(runtime.NumCPU()))
	dst = bsoncore.AppendStringElement(dst, "cpuArch", machine())
	dst = bsoncore.AppendBooleanElement(dst, "numaEnabled", false)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)

	name, version := system()
	at, dst = bsoncore.AppendDocumentElementStart(dst, "os")
	dst = bsoncore.AppendStringElement(dst, "type", strings.ToUpper(runtime.GOOS[:1])+runtime.GOOS[1:])
	dst = bsoncore.AppendStringElement(dst, "name", name)
	dst = bsoncore.AppendStringElement(dst, "version", version)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)

	at, dst = bsoncore.AppendDocumentElementStart(dst, "extra")
	dst = bsoncore.AppendInt32Element(dst, "pageSize", int32(os.Getpagesize()))
	reply.Elements, _ = bsoncore.AppendDocumentEnd(dst, at)
	return nil
}

// machine is the processor's name as uname gives it.
func machine() string {
	switch runtime.GOARCH {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return runtime.GOARCH
}

// system is the system's name and version from os-release, or the plain name of the platform.
func system() (name, version string) {
	name, version = runtime.GOOS, "unknown"
	text, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return name, version
	}
	for line := range bytes.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(string(line)), "=")
		value = strings.Trim(value, `"`)
		switch key {
		case "PRETTY_NAME":
			name = value
		case "VERSION_ID":
			version = value
		}
	}
	return name, version
}
