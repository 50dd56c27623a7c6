package compat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"oxbow"
)

// client is a MongoDB client that runs the sequence of README.md.
type client struct {
	name string
	// mechanism is that by which it logs in; "": its own choice.
	mechanism string
	// duplicate and bulkDuplicate are the classes of its errors on a duplicate key, of one insert and of several.
	duplicate, bulkDuplicate string
	// command is the program and its arguments for a phase; nil for the driver in this process.
	command func(uri, phase string, databases []string) []string
	// missing says what is not installed and how to install it; "" when nothing is missing.
	missing func() string
}

var clients = []client{
	{name: "go", duplicate: "mongo.WriteException", bulkDuplicate: "mongo.BulkWriteException", missing: func() string { return "" }},
	{
		name: "node", mechanism: "SCRAM-SHA-256", duplicate: "MongoServerError", bulkDuplicate: "MongoBulkWriteError", missing: noNode,
		command: func(uri, phase string, databases []string) []string {
			return append([]string{"node", "node/driver.js", uri, phase, "own_node"}, databases...)
		},
	},
	{
		name: "mongoose", duplicate: "MongoServerError", bulkDuplicate: "MongoBulkWriteError", missing: noNode,
		command: func(uri, phase string, databases []string) []string {
			return append([]string{"node", "node/mongoose.js", uri, phase, "own_mongoose"}, databases...)
		},
	},
	{
		name: "mongosh", mechanism: "SCRAM-SHA-1", duplicate: "MongoServerError", bulkDuplicate: "MongoBulkWriteError", missing: noNode,
		command: func(uri, phase string, databases []string) []string {
			script := fmt.Sprintf("var phase = %q, name = 'own_mongosh', databases = %s, data = %q", phase, quoted(databases), absolute(flightsFile))
			return []string{"node/node_modules/.bin/mongosh", uri, "--quiet", "--norc", "--eval", script, "node/shell.mongosh.js"}
		},
	},
	{
		name: "pymongo", duplicate: "DuplicateKeyError", bulkDuplicate: "BulkWriteError", missing: noPymongo,
		command: func(uri, phase string, databases []string) []string {
			return append([]string{python, "python/driver.py", uri, phase, "own_pymongo"}, databases...)
		},
	},
}

// python is Debian's, for which python3-pymongo installs pymongo.
const python = "/usr/bin/python3"

func ownCollections() []string {
	var names []string
	for _, c := range clients {
		names = append(names, "own_"+c.name)
	}
	return names
}

func quoted(names []string) string {
	b, err := json.Marshal(names)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func absolute(file string) string {
	path, err := filepath.Abs(file)
	if err != nil {
		panic(err)
	}
	return path
}

func noNode() string {
	if _, err := exec.LookPath("node"); err != nil {
		return "Node.js is not installed: it takes version 20"
	}
	for _, name := range []string{"mongodb", "mongoose", "mongosh"} {
		if _, err := os.Stat(filepath.Join("node/node_modules", name)); err != nil {
			return name + " is not installed: run npm ci in test/compat/node"
		}
	}
	return ""
}

func noPymongo() string {
	if err := exec.Command(python, "-c", "import pymongo").Run(); err != nil {
		return "pymongo is not installed: apt-get install python3-pymongo"
	}
	return ""
}

// require skips the test where the client is not installed, or fails it where OXBOW_CLIENTS=required says that all are there.
func (c client) require(t *testing.T) {
	t.Helper()
	why := c.missing()
	switch {
	case why == "":
	case os.Getenv("OXBOW_CLIENTS") == "required":
		t.Fatal(why)
	default:
		t.Skip(why)
	}
}

// uri is the gateway's connection string with who the client is.
func (c client) uri(g *oxbow.Gateway) string {
	uri := strings.Replace(g.URI(), "//", "//"+url.UserPassword(user, password).String()+"@", 1) + "/?authSource=admin"
	if c.mechanism != "" {
		uri += "&authMechanism=" + c.mechanism
	}
	return uri
}

// run runs a phase over the databases of all layouts and returns a line for each.
func (c client) run(t *testing.T, uri, phase string) []line {
	t.Helper()
	var databases []string
	for _, l := range layouts {
		databases = append(databases, l.name)
	}
	if c.command == nil {
		return runGoDriver(t, uri, phase, databases)
	}
	args := c.command(uri, phase, databases)
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	// What mongosh keeps between its runs goes into a folder of the test.
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(args[:2], " "), err, out, stderr.Bytes())
	}
	var lines []line
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var one line
		if err := d.Decode(&one); err != nil {
			t.Fatalf("read the results: %v\n%s%s", err, out, stderr.Bytes())
		}
		lines = append(lines, one)
	}
	if len(lines) != len(databases) {
		t.Fatalf("%d results for %d databases\n%s%s", len(lines), len(databases), out, stderr.Bytes())
	}
	return lines
}

// TestClients has every client read the same figures from every layout, change a collection of its own, and read again after January was dropped.
func TestClients(t *testing.T) {
	g := serve(t)
	admin := connect(t, clients[0].uri(g))
	loadAll(t, admin)
	t.Run("partitions", func(t *testing.T) { checkPartitions(t, admin) })
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			c.require(t)
			for i, got := range c.run(t, c.uri(g), "figures") {
				t.Run(layouts[i].name, func(t *testing.T) {
					checkFigures(t, layouts[i], got.Figures)
					same(t, expectOwn(t, c, collectionsOf("own_"+c.name)), *got.Own)
				})
			}
		})
	}
	dropJanuary(t, admin)
	for _, c := range clients {
		t.Run(c.name+" after January was dropped", func(t *testing.T) {
			c.require(t)
			for i, got := range c.run(t, c.uri(g), "left") {
				if *got.Left != flightsLeft {
					t.Errorf("%s has %d flights left, not %d", layouts[i].name, *got.Left, flightsLeft)
				}
			}
		})
	}
}
