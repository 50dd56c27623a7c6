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
	memory := totalMemory() >> 20
	at, dst := bsoncore.AppendDocumentElementStart(reply.Elements, "system")
	dst = bsoncore.AppendDateTimeElement(dst, "currentTime", t.deps.Now().UnixMilli())
	dst = bsoncore.AppendStringElement(dst, "hostname", t.deps.Server.Host)
	dst = bsoncore.AppendInt32Element(dst, "cpuAddrSize", strconv.IntSize)
	dst = bsoncore.AppendInt64Element(dst, "memSizeMB", memory)
	dst = bsoncore.AppendInt64Element(dst, "memLimitMB", memory)
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

// totalMemory is the machine's memory in bytes, or 0 where /proc does not tell.
func totalMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) >= 2 && fields[0] == "MemTotal:" {
			kb, _ := strconv.ParseInt(fields[1], 10, 64)
			return kb << 10
		}
	}
	return 0
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
