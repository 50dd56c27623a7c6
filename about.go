package oxbow

import (
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"oxbow/internal/command"
)

// answersAs is the version of MongoDB that Oxbow behaves as, unless a server behind it is older.
const answersAs = "7.0.14"

// about is what the gateway tells of itself.
func about(addr net.Addr) command.ServerInfo {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	if tcp, ok := addr.(*net.TCPAddr); ok {
		host = net.JoinHostPort(host, strconv.Itoa(tcp.Port))
	}
	build := "devel"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		build = info.Main.Version
	}
	return command.ServerInfo{
		Version: answersAs, Build: build, Host: host, Address: addr.String(), Started: time.Now(), Argv: os.Args,
		Memory: totalMemory(meminfo), MemoryLimit: machineMemory(),
	}
}
