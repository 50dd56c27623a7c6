package access

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oxbow/internal/auth"
)

var update = flag.Bool("update", false, "write testdata/commands.txt anew")

// columns are the roles of the table, each over the database shop; "none" has not logged in, "nothing" has no role.
var columns = []string{
	"none", "nothing", "read", "readWrite", "dbAdmin", "readAnyDatabase", "readWriteAnyDatabase", "dbAdminAnyDatabase", "clusterMonitor", "root",
}

// bodies are the rows that are more than a command and the name of a collection. What stands behind the name tells two rows of a command apart.
var bodies = map[string]bson.D{
	"aggregate":                 {{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{}}, {Key: "cursor", Value: bson.D{}}},
	"aggregate $collStats":      {{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: stages("$collStats", bson.D{})}, {Key: "cursor", Value: bson.D{}}},
	"aggregate $out":            {{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: stages("$out", "o")}, {Key: "cursor", Value: bson.D{}}},
	"aggregate $lookup of log":  {{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: stages("$lookup", lookup())}, {Key: "cursor", Value: bson.D{}}},
	"currentOp $ownOps":         {{Key: "currentOp", Value: 1}, {Key: "$ownOps", Value: true}},
	"explain find":              {{Key: "explain", Value: bson.D{{Key: "find", Value: "c"}}}},
	"explain delete":            {{Key: "explain", Value: bson.D{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{removal()}}}}},
	"explain":                   {{Key: "explain", Value: bson.D{{Key: "nothingKnown", Value: "c"}}}},
	"insert":                    {{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{}}}},
	"update":                    {{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{change(false)}}},
	"update upsert":             {{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{change(true)}}},
	"delete":                    {{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{removal()}}},
	"findAndModify":             {{Key: "findAndModify", Value: "c"}, {Key: "update", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}}},
	"findAndModify remove":      {{Key: "findAndModify", Value: "c"}, {Key: "remove", Value: true}},
	"renameCollection":          {{Key: "renameCollection", Value: "shop.gone"}, {Key: "to", Value: "shop.came"}},
	"renameCollection from log": {{Key: "renameCollection", Value: "log.gone"}, {Key: "to", Value: "shop.came"}},
	"createIndexes": {{Key: "createIndexes", Value: "c"},
		{Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "name", Value: "a_1"}}}}},
	"dropIndexes":  {{Key: "dropIndexes", Value: "c"}, {Key: "index", Value: "a_1"}},
	"usersInfo":    {{Key: "usersInfo", Value: 1}},
	"saslStart":    {{Key: "saslStart", Value: 1}, {Key: "mechanism", Value: "PLAIN"}, {Key: "payload", Value: bson.Binary{}}},
	"nothingKnown": {{Key: "nothingKnown", Value: 1}},
	"listShards":   {{Key: "listShards", Value: 1}}, // as with all that only servers have, who may is told that it is not there
	"balancerStop": {{Key: "balancerStop", Value: 1}},
}

func stages(name string, argument any) bson.A { return bson.A{bson.D{{Key: name, Value: argument}}} }

func lookup() bson.D {
	return bson.D{{Key: "from", Value: bson.D{{Key: "db", Value: "log"}, {Key: "coll", Value: "c"}}}, {Key: "pipeline", Value: bson.A{}}, {Key: "as", Value: "x"}}
}

func removal() bson.D {
	return bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: 7}}}, {Key: "limit", Value: 1}}
}

func change(upsert bool) bson.D {
	return bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: 7}}}, {Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}}, {Key: "upsert", Value: upsert}}
}

// TestEveryCommand runs every command that the gateway lists without a login and with each role, and compares who was let through.
func TestEveryCommand(t *testing.T) {
	configuration := "users:\n" + entry(t, "nothing@shop", []auth.Mechanism{auth.SHA256}, "read@elsewhere")
	for _, role := range columns[2:] {
		held := role
		if auth.CheckRole(auth.Role{Name: role, Database: "shop"}) != nil {
			held += "@admin"
		}
		configuration += entry(t, role+"@shop", []auth.Mechanism{auth.SHA256}, held)
	}
	g := serve(t, configuration)
	clients := map[string]*mongo.Client{"none": g.as(t, "")}
	for _, role := range columns[1:] {
		clients[role] = g.as(t, role+"@shop")
	}
	rows := commandRows(t, clients["root"])
	var b strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&b, "%-27s", row.name)
		for _, role := range columns {
			_, err := command(t, clients[role], row.database, row.body)
			if refused := codeOf(err) == unauthorized; refused {
				fmt.Fprintf(&b, " %s", strings.Repeat("-", len(role)))
			} else {
				fmt.Fprintf(&b, " %s", role)
			}
		}
		b.WriteByte('\n')
	}
	compare(t, "testdata/commands.txt", b.String())
}

// row is one command as it is tried.
type row struct {
	name     string
	database string
	body     bson.D
}

// commandRows are the commands that the gateway lists, and those of bodies.
func commandRows(t *testing.T, c *mongo.Client) []row {
	t.Helper()
	var list struct {
		Commands map[string]struct {
			AdminOnly bool `bson:"adminOnly"`
		}
	}
	must(t, "listCommands", c.Database("admin").RunCommand(t.Context(), bson.D{{Key: "listCommands", Value: 1}}).Decode(&list))
	var rows []row
	for name, about := range list.Commands {
		if name == "logout" {
			continue // the clients are used for all rows
		}
		r := row{name, "shop", bodies[name]}
		if about.AdminOnly {
			r.database = "admin"
		}
		if r.body == nil {
			r.body = bson.D{{Key: name, Value: "c"}}
		}
		rows = append(rows, r)
	}
	for name, body := range bodies {
		command, form, _ := strings.Cut(name, " ")
		about, listed := list.Commands[command]
		if listed && form == "" {
			continue
		}
		r := row{name, "shop", body}
		if about.AdminOnly {
			r.database = "admin"
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.name, b.name) })
	return rows
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		must(t, "write the table", os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	must(t, "read the table", err)
	if string(want) == got {
		return
	}
	have := strings.Split(got, "\n")
	for i, line := range strings.Split(string(want), "\n") {
		if i >= len(have) || line != have[i] {
			t.Errorf("line %d of %s:\nwant %s\ngot  %s", i+1, file, line, strings.Join(have[min(i, len(have)):min(i+1, len(have))], ""))
		}
	}
}
