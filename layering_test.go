package oxbow_test

import (
	"encoding/json"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// pkg is what go list tells of a package.
type pkg struct {
	ImportPath string
	Name       string
	Doc        string
	Dir        string
	GoFiles    []string
	Imports    []string
}

// TestLayering checks the rules of the house: who may import whom, and what packages and files may not be called.
func TestLayering(t *testing.T) {
	packages := list(t)
	for _, p := range packages {
		room := strings.TrimPrefix(p.ImportPath, "oxbow/internal/")
		for _, imported := range p.Imports {
			to, ours := strings.CutPrefix(imported, "oxbow/internal/")
			if ours && !allowed(room, to) {
				t.Errorf("%s must not import %s", room, to)
			}
		}
		if slices.Contains(pure, room) {
			for _, imported := range p.Imports {
				if slices.Contains(impure, imported) {
					t.Errorf("%s is pure and must not import %s", room, imported)
				}
			}
		}
	}
}

// TestNames checks names of packages and files, and that every package says what it is.
func TestNames(t *testing.T) {
	for _, p := range list(t) {
		if slices.Contains([]string{"common", "util", "utils", "base", "helper", "helpers", "manager", "misc"}, p.Name) {
			t.Errorf("%s: the name %q says nothing", p.ImportPath, p.Name)
		}
		if p.Doc == "" && len(p.GoFiles) > 0 {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
		for _, f := range p.GoFiles {
			if strings.HasSuffix(strings.TrimSuffix(f, ".go"), "v2") {
				t.Errorf("%s: files are not named by version", path.Join(p.ImportPath, f))
			}
		}
	}
}

// pure are the rooms that do no I/O, start no goroutine and read no clock; impure is what they would need for it.
var (
	pure   = []string{"wire", "bson", "mongoerr", "query", "route", "plan", "retention", "schedule", "capacity", "statement", "memory"}
	impure = []string{"os", "net", "net/http", "log/slog", "os/exec", "golang.org/x/sync/errgroup", "github.com/cockroachdb/pebble/v2"}
)

// may lists what each room may import of the others. A room that is not named here is one that nobody decided about.
var may = map[string][]string{
	"bson":                {},
	"memory":              {"mongoerr"},
	"mongoerr":            {"bson"},
	"wire":                {"bson", "mongoerr"},
	"query":               {"bson", "memory", "mongoerr"},
	"backend":             {"bson", "memory", "mongoerr"},
	"statement":           {"backend", "bson", "mongoerr", "query"},
	"route":               {"bson", "mongoerr", "query"},
	"auth":                {"bson", "mongoerr"},
	"config":              {"auth", "bson", "route", "schedule", "throttle"},
	"retention":           {"route"},
	"catalog":             {"auth", "backend", "bson", "config", "mongoerr", "route"},
	"plan":                {"backend", "bson", "catalog", "mongoerr", "query", "route", "statement"},
	"exec":                {"backend", "bson", "memory", "mongoerr", "plan", "query"},
	"cursor":              {"bson", "memory", "mongoerr"},
	"command":             {"auth", "backend", "bson", "catalog", "cursor", "exec", "memory", "mongoerr", "plan", "query", "route", "statement"},
	"server":              {"backend", "bson", "command", "memory", "mongoerr", "wire"},
	"observe":             {"backend", "catalog", "command", "cursor", "exec", "maintain", "memory", "mongoerr", "route", "throttle"},
	"admin":               {},
	"admin/admintest":     {},
	"engine":              {"bson", "memory", "mongoerr", "query"},
	"backend/embedded":    {"backend", "bson", "engine", "memory", "mongoerr", "query", "statement"},
	"backend/remote":      {"backend", "bson", "memory", "mongoerr"},
	"backend/backendtest": {"backend", "bson", "mongoerr"},
	"deployment":          {"backend", "bson", "mongoerr"},
	"deployment/scripted": {"backend", "bson", "mongoerr", "wire"},
	"throttle":            {"backend", "bson", "deployment", "maintain", "mongoerr"},
	"schedule":            {},
	"maintain":            {"backend", "bson", "mongoerr", "retention", "schedule"},
	"maintain/partition":  {"backend", "bson", "catalog", "maintain", "mongoerr", "retention", "route"},
	"maintain/purge":      {"backend", "bson", "catalog", "deployment", "maintain", "mongoerr", "query", "route"},
	"operation":           {"backend", "bson", "deployment", "mongoerr", "query"},
	"maintain/kill":       {"bson", "maintain", "operation"},
	"terminal":            {},
	"survey":              {"backend", "bson", "deployment", "mongoerr", "operation", "query", "terminal"},
	"archive":             {"backend", "bson"},
	"bson/bsontest":       {"bson"},
	"bench":               {},
	"bench/im":            {"bench"},
	"bench/ways":          {"bench"},
}

// allowed reports whether one room may import another. The root package and the commands construct everything, so they may import all.
func allowed(from, to string) bool {
	if from == "oxbow" || strings.HasPrefix(from, "oxbow/") {
		return true
	}
	rooms, known := may[from]
	return known && slices.Contains(rooms, to)
}

func list(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Name,Doc,Dir,GoFiles,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("list packages: %v", err)
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
