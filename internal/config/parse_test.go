package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	"oxbow/internal/auth"
	"oxbow/internal/route"
)

// ada is a user, with a credential that no password fits.
const ada = `users:
  ada@shop:
    scram-sha-256: "15000$c2FsdHNhbHQ=$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    roles: [readWrite, root@admin]
`

// whole has every key that there is.
const whole = `# the example of the manual
listen: 127.0.0.1:27018
backends:
  local: {embedded: ./data, cache: 256MiB, memtable: 64MiB, sync: always}
  rs1:   {uri: "mongodb://a,b,c/?replicaSet=rs1"}
databases: {im: rs1, "*": local}
collections:
  fla.logGset:
    time: {field: time, unit: s, every: day, zone: Asia/Shanghai, as: collection}
    keep: 1d
    hold: 1h30m
    ahead: 3
    late: recreate
    name: "{collection}{yymmdd}"
  im.user: {hash: {field: uid, count: 32}, over: [rs1, local], ordered: partition}
  fla.both:
    time:
      field: t.at
      every: hour
      as: database
    hash: {field: dev}
`

func parsed(t *testing.T, text string) *Config {
	t.Helper()
	cfg, err := Parse("oxbow.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return cfg
}

func TestParse(t *testing.T) {
	cfg := parsed(t, whole)
	if cfg.Listen != "127.0.0.1:27018" || cfg.Default != "local" || cfg.BackendFor("im") != "rs1" || cfg.BackendFor("other") != "local" {
		t.Errorf("%+v", cfg)
	}
	if b := cfg.Backend("local"); *b.Embedded != (Embedded{Dir: "./data", CacheBytes: 256 << 20, MemtableBytes: 64 << 20, SyncAlways: true}) {
		t.Errorf("%+v", b.Embedded)
	}
	if b := cfg.Backend("rs1"); b.Embedded != nil || b.URI != "mongodb://a,b,c/?replicaSet=rs1" {
		t.Errorf("%+v", b)
	}
	c := cfg.Collection("fla.logGset")
	if l := c.Layout.Time; l.Field.String() != "time" || l.Unit != route.Seconds || l.Every != route.Day || l.Zone.String() != "Asia/Shanghai" ||
		l.Keep != 24*time.Hour || l.Ahead != 3 || l.Late != route.Recreate || c.Layout.Hash != nil || c.Hold != 90*time.Minute || c.As != AsCollection {
		t.Errorf("%+v, %+v", c, l)
	}
	c = cfg.Collection("im.user")
	if h := c.Layout.Hash; h.Field.String() != "uid" || h.Count != 32 || c.Layout.Time != nil || strings.Join(c.Over, " ") != "rs1 local" || c.Ordered != OrderedPartition {
		t.Errorf("%+v, %+v", c, h)
	}
	c = cfg.Collection("fla.both")
	if l := c.Layout.Time; l.Unit != route.Date || l.Every != route.Hour || l.Zone != time.UTC || l.Keep != 0 || l.Ahead != DefaultAhead ||
		l.Late != route.Reject || c.Hold != DefaultHold || c.As != AsDatabase || c.Ordered != OrderedCollection || c.Layout.Hash.Count != 64 || strings.Join(c.Over, " ") != "local" {
		t.Errorf("%+v, %+v", c, l)
	}
}

func TestParseDefaults(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "{}", "listen: 127.0.0.1:27017"} {
		cfg := parsed(t, text)
		if cfg.Listen != DefaultListen || len(cfg.Backends) != 1 || cfg.Backends[0].Embedded.Dir != "./data" || cfg.BackendFor("x") != "local" {
			t.Errorf("%q: %+v", text, cfg)
		}
	}
	if cfg := parsed(t, "listen: /run/oxbow.sock"); cfg.Listen != "/run/oxbow.sock" {
		t.Errorf("a socket's path: %q", cfg.Listen)
	}
	if cfg := parsed(t, "backends: {mine: {embedded: /x}}"); cfg.Default != "mine" {
		t.Errorf("the only backend is not the default: %+v", cfg)
	}
}

func TestParseRefuses(t *testing.T) {
	const entry = "collections:\n  a.b:\n    "
	for _, c := range []struct{ name, text, want string }{
		{"no YAML", "listen: [", "oxbow.yaml:1:"},
		{"a list", "- a", "oxbow.yaml:1:1: must be a mapping"},
		{"two documents", "listen: 127.0.0.1:1\n---\nlisten: 127.0.0.1:2", "oxbow.yaml:3:"},
		{"unknown key", "listen: 127.0.0.1:1\nlisen: x", "oxbow.yaml:2:1: lisen: is not a key here"},
		{"HTTP beyond this machine without a token", "http: 0.0.0.0:8017", "oxbow.yaml:1:7: http: \"0.0.0.0\" is not a loopback address"},
		{"HTTP without a port", "http: localhost", "oxbow.yaml:1:7: http: \"localhost\" is not host:port"},
		{"HTTP without an address", "http: {token: t}", "oxbow.yaml:1:7: http: needs listen"},
		{"lease on an embedded catalog", "lease: 5s", "oxbow.yaml:1:8: lease: needs a catalog on a server"},
		{"lease too short", "backends: {r: {uri: mongodb://h}}\nlease: 1s", "oxbow.yaml:2:8: lease: 1s is not between 2s and 5m0s"},
		{"longest too long", "backends: {r: {uri: mongodb://h}}\nlongest: 2h", "longest: 2h0m0s is not between 1s and 1h0m0s"},
		{"hold below lease and longest", "backends: {r: {uri: mongodb://h}}\ncollections:\n  a.b: {time: {field: t, every: day}, hold: 69s}",
			"collections.a.b.hold: 1m9s is less than lease + longest (10s + 1m0s)"},
		{"wrong slow", "slow: lots", "oxbow.yaml:1:7: slow: \"lots\" is not a time"},
		{"throttle without sense", "throttle: lag<2s, disk<5%", "oxbow.yaml:1:11: throttle: \"disk<5%\": write disk>"},
		{"wrong abandoned", "abandoned: stop", "oxbow.yaml:1:12: abandoned: must be one of finish, kill, not \"stop\""},
		{"slow below a millisecond", "slow: 5us", "is not a time"},
		{"HTTP with another key", "http: {listen: 127.0.0.1:1, tls: x}", "http.tls: is not a key here"},
		{"key twice", "listen: 127.0.0.1:1\nlisten: 127.0.0.1:2", "oxbow.yaml:2:1: listen: is there twice, first in line 1"},
		{"two layouts", entry + "hash: {field: u}\n  a.b:\n    time: {field: t, every: day}", "oxbow.yaml:4:3: collections.a.b: is there twice, first in line 2"},
		{"not loopback", "listen: 0.0.0.0:27017", "oxbow.yaml:1:9: listen: \"0.0.0.0\" is not a loopback address"},
		{"beyond this machine without a login", "listen: 0.0.0.0:27017\nauth: off\n" + ada, "oxbow.yaml:1:9: listen: \"0.0.0.0\" is not a loopback address: listening beyond this machine is refused with auth: off"},
		{"a host by name", "listen: example.com:27017", "\"example.com\" is not an IP address"},
		{"wrong auth", "auth: maybe", "must be one of on, off"},
		{"user without a database", "users:\n  ada: {roles: [read]}", "oxbow.yaml:2:3: users.ada: must be name@database"},
		{"user without a credential", "users:\n  ada@shop: {roles: [read]}", "needs scram-sha-256 or scram-sha-1"},
		{"user without roles", "users:\n  ada@shop: {}", "needs roles"},
		{"user with a password", "users:\n  ada@shop: {password: tide, roles: [read]}", "users.ada@shop.password: is not a key here"},
		{"wrong credential", "users:\n  ada@shop: {scram-sha-256: tide, roles: [read]}", "users.ada@shop.scram-sha-256: must be four parts"},
		{"no such role", "users:\n  ada@shop: {roles: [reed]}", "\"reed\" is not a role of database \"shop\""},
		{"a role of admin elsewhere", "users:\n  ada@shop: {roles: [root]}", "\"root\" is not a role of database \"shop\""},
		{"TLS without a key", "tls: {certificate: c.pem}", "oxbow.yaml:1:6: tls: needs key"},
		{"TLS on a Unix socket", "listen: /tmp/x.sock\ntls: {certificate: c.pem, key: k.pem}", "a Unix socket is not encrypted"},
		{"no port", "listen: localhost", "oxbow.yaml:1:9: listen:"},
		{"wrong port", "listen: localhost:70000", "is not a port"},
		{"alias", "backends: &x {a: {embedded: d}}\ndatabases: *x", "oxbow.yaml:1:"},
		{"merge", "collections:\n  a.b:\n    <<: {hash: {field: u}}", "oxbow.yaml:3:5: "},
		{"empty value", "listen:", "oxbow.yaml:1:1: listen: has no value"},
		{"no backend", "backends: {}", "oxbow.yaml:1:"},
		{"backend of no kind", "backends:\n  x: {}", "oxbow.yaml:2:3: backends.x: needs one of"},
		{"backend of two kinds", "backends:\n  x: {embedded: d, uri: mongodb://h}", "oxbow.yaml:2:3: backends.x: needs one of"},
		{"remote with cache", "backends:\n  x: {uri: mongodb://h, cache: 1GiB}", "oxbow.yaml:2:25: backends.x.cache: is not a key here"},
		{"wrong URI", "backends:\n  x: {uri: http://h}", "backends.x.uri: is not a connection string"},
		{"wrong size", "backends:\n  x: {embedded: d, cache: lots}", "oxbow.yaml:2:27: backends.x.cache: \"lots\" is not a size"},
		{"one folder twice", "backends:\n  x: {embedded: d}\n  y: {embedded: d}\ndatabases: {\"*\": x}", "oxbow.yaml:3:3: backends.y: has the folder of backend x"},
		{"unknown backend", "databases: {x: nowhere}", "oxbow.yaml:1:16: databases.x: must be the name of a backend, not \"nowhere\""},
		{"no default backend", "backends:\n  x: {embedded: d}\n  y: {embedded: e}", "must say with \"*\""},
		{"over an unknown backend", entry + "hash: {field: u}\n    over: [local, nowhere]", "oxbow.yaml:4:19: collections.a.b.over: there is no backend \"nowhere\""},
		{"over one twice", entry + "hash: {field: u}\n    over: [local, local]", "oxbow.yaml:4:19: collections.a.b.over: backend \"local\" is there twice"},
		{"no namespace", "collections:\n  logs: {hash: {field: u}}", "oxbow.yaml:2:3: collections.logs: must be a namespace"},
		{"reserved database", "collections:\n  admin.x: {hash: {field: u}}", "reserved"},
		{"the catalog's database", "collections:\n  oxbow.x: {hash: {field: u}}", "reserved"},
		{"the catalog's database by another name", "catalog: gw\ncollections:\n  gw.x: {hash: {field: u}}", "reserved"},
		{"a reserved database for the catalog", "catalog: admin", "reserved"},
		{"no name for the catalog's database", "catalog: a.b", "does not take"},
		{"long database", "collections:\n  " + strings.Repeat("d", 64) + ".x: {hash: {field: u}}", "fewer than 64"},
		{"wrong database", "collections:\n  \"a b.x\": {hash: {field: u}}", "does not take"},
		{"wrong collection", "collections:\n  a.$x: {hash: {field: u}}", "does not take"},
		{"system collection", "collections:\n  a.system.x: {hash: {field: u}}", "MongoDB's own"},
		{"long namespace", "collections:\n  a." + strings.Repeat("c", 250) + ": {hash: {field: u}}", "255 is the most"},
		{"long namespace on an old server", "backends: {r: {uri: mongodb://h}}\ncollections:\n  a." + strings.Repeat("c", 120) + ": {hash: {field: u}}", "120 is the most"},
		{"no layout", entry + "keep: 1d", "oxbow.yaml:2:3: collections.a.b: has no layout"},
		{"no field", entry + "hash: {count: 4}", "collections.a.b.hash: needs field"},
		{"field of an operator", entry + "hash: {field: $x}", "oxbow.yaml:3:19: collections.a.b.hash.field: \"$x\" is not a field's path"},
		{"field with an empty part", entry + "hash: {field: a..b}", "a part is empty"},
		{"field in an array", entry + "hash: {field: a.0}", "goes through an array"},
		{"hash count 0", entry + "hash: {field: u, count: 0}", "oxbow.yaml:3:29: collections.a.b.hash.count: must be a whole number from 1 to 1024, not 0"},
		{"hash count too big", entry + "hash: {field: u, count: 1025}", "from 1 to 1024, not 1025"},
		{"hash count no number", entry + "hash: {field: u, count: many}", "from 1 to 1024, not many"},
		{"hash count huge", entry + "hash: {field: u, count: 99999999999999999999}", "from 1 to 1024"},
		{"gene", entry + "hash: {field: u, gene: {of: uid, bits: 8}}", "oxbow.yaml:3:22: collections.a.b.hash.gene: is planned, not built yet"},
		{"field dictionary", entry + "hash: {field: u}\n    fields: {name: n}", "oxbow.yaml:4:5: collections.a.b.fields: is planned, not built yet"},
		{"order of writes", entry + "hash: {field: u}\n    ordered: slot", "ordered"},
		{"legacy", entry + "hash: {field: u}\n    legacy: old", "is planned, not built yet"},
		{"no every", entry + "time: {field: t}", "collections.a.b.time: needs every"},
		{"wrong every", entry + "time: {field: t, every: year}", "must be one of minute, hour, day, week, month, not \"year\""},
		{"wrong unit", entry + "time: {field: t, every: day, unit: us}", "must be one of date, s, ms, objectId"},
		{"no such zone", entry + "time: {field: t, every: day, zone: Asia/Shanghia}", "oxbow.yaml:3:40: collections.a.b.time.zone: there is no zone \"Asia/Shanghia\""},
		{"the machine's zone", entry + "time: {field: t, every: day, zone: Local}", "there is no zone"},
		{"zone outside the database", entry + "time: {field: t, every: day, zone: ../../etc/passwd}", "there is no zone"},
		{"keep without time", entry + "hash: {field: u}\n    keep: 1d", "oxbow.yaml:4:11: collections.a.b.keep: needs a time layout"},
		{"keep of nothing", entry + "time: {field: t, every: day}\n    keep: 0", "must be a second at least"},
		{"wrong keep", entry + "time: {field: t, every: day}\n    keep: 1 day", "is not a duration"},
		{"wrong unit of keep", entry + "time: {field: t, every: day}\n    keep: 5y", "there is no unit \"y\""},
		{"long keep", entry + "time: {field: t, every: day}\n    keep: 99999999999999w", "longer than 100 years"},
		{"wrong late", entry + "time: {field: t, every: day}\n    late: maybe", "must be one of reject, recreate"},
		{"ahead too far", entry + "time: {field: t, every: day}\n    ahead: 100000", "from 0 to 1000"},
		{"template without slot", entry + "hash: {field: u}\n    name: \"{collection}\"", "oxbow.yaml:4:11: collections.a.b.name: \"{collection}\" does not tell partitions apart: it lacks {slot}"},
		{"template without day", entry + "time: {field: t, every: day}\n    name: \"{collection}{yyyymm}\"", "as exact as {yyyymmdd}"},
		{"template without year", entry + "time: {field: t, every: day}\n    name: \"{collection}{mmdd}\"", "lacks the year"},
		{"template with a date", entry + "hash: {field: u}\n    name: \"{collection}_{slot}_{yyyy}\"", "the layout has no time"},
		{"template with a slot", entry + "time: {field: t, every: day}\n    name: \"{collection}_{slot}_{yyyymmdd}\"", "the layout has no hash"},
		{"unknown placeholder", entry + "hash: {field: u}\n    name: \"{coll}_{slot}\"", "there is no placeholder {coll}"},
		{"open placeholder", entry + "hash: {field: u}\n    name: \"{collection\"", "has a { without a }"},
		{"long database of a template", "collections:\n  " + strings.Repeat("d", 60) + ".x: {time: {field: t, every: day, as: database}}", "fewer than 64"},
		{"one template", "collections:\n  a.b: {hash: {field: u}, name: \"p_{slot}\"}\n  a.c: {hash: {field: u}, name: \"p_{slot}\"}", "oxbow.yaml:3:3: collections.a.c: partitions could have the names of those of a.b"},
		{"templates that can meet", "collections:\n  a.b: {hash: {field: u}, name: \"p{slot}\"}\n  a.c: {time: {field: t, every: day}, name: \"p{yyyymmdd}\"}", "could have the names of those of a.b"},
		{"partition like a collection", "collections:\n  a.b: {hash: {field: u}}\n  a.b_7: {hash: {field: u}}", "a partition of a.b could have its name"},
		{"databases that can meet", "collections:\n  a.b: {time: {field: t, every: day, as: database}}\n  a_20260101.b: {hash: {field: u}}", "could have its name"},
	} {
		_, err := Parse("oxbow.yaml", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.name, err, c.want)
		}
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("%s: %T is no Error", c.name, err)
		}
	}
}

func TestParseUsers(t *testing.T) {
	cfg := parsed(t, "listen: 0.0.0.0:27017\ntls: {certificate: c.pem, key: k.pem, clients: a.pem}\n"+ada)
	u := cfg.Users[0]
	if !cfg.Authorize || u.String() != "ada@shop" || len(u.Credentials) != 1 || !u.Has(auth.Role{Name: "root", Database: "admin"}) || !u.Has(auth.Role{Name: "readWrite", Database: "shop"}) {
		t.Errorf("%+v", cfg)
	}
	if *cfg.TLS != (TLS{Certificate: "c.pem", Key: "k.pem", Clients: "a.pem"}) {
		t.Errorf("%+v", cfg.TLS)
	}
	if cfg := parsed(t, "auth: off\n"+ada); cfg.Authorize || len(cfg.Users) != 1 {
		t.Errorf("auth: off gives %+v", cfg)
	}
	if cfg := parsed(t, "auth: on"); !cfg.Authorize {
		t.Error("auth: on is not on")
	}
}

// All errors of a file are given, in its order.
func TestParseGivesAllErrors(t *testing.T) {
	_, err := Parse("f", []byte("zzz: 1\nlisten: x\ncollections:\n  a.b: {hash: {field: u, count: 0}, keep: 1d}\n"))
	if err == nil {
		t.Fatal("accepted")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d errors: %v", len(lines), err)
	}
	for i, at := range []string{"f:1:1: ", "f:2:9: ", "f:4:33: ", "f:4:43: "} {
		if !strings.HasPrefix(lines[i], at) {
			t.Errorf("error %d is %q, not at %s", i, lines[i], at)
		}
	}
}

// Two collections may have partitions in one database per day, since their names differ.
func TestParseTakesNeighbours(t *testing.T) {
	parsed(t, "collections:\n  a.b: {time: {field: t, every: day, as: database}}\n  a.c: {time: {field: t, every: day, as: database}}\n  a.d: {hash: {field: u}}\n  a.e: {time: {field: t, every: week}}\n")
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{whole, "", "a: &x [1, *x]\n<<: *x", "? {a: b}\n: !!binary c", "collections: {a.b: {hash: {field: \"\\0\", count: 1e3}}}", "listen: >\n  a\n\n", "- - -\n--- %\n..."} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, err := Parse("f", data)
		if (cfg == nil) == (err == nil) {
			t.Fatalf("%v, %v", cfg, err)
		}
		if err != nil {
			return
		}
		if cfg.Backend(cfg.Default) == nil {
			t.Fatalf("the default backend %q does not exist", cfg.Default)
		}
		for i := range cfg.Collections {
			c := &cfg.Collections[i]
			if _, _, err := splitNamespace(c.Namespace()); err != nil {
				t.Fatal(err)
			}
			database, collection := c.PhysicalName(0, 0, 2)
			if checkDatabaseName(database) != nil || checkCollectionName(collection) != nil {
				t.Fatalf("partitions of %s would be called %s.%s", c.Namespace(), database, collection)
			}
			c.Cost(1)
		}
	})
}

// TestCredentialsInErrors: a connection string in the wrong place does not show its login, in whatever way the file is wrong.
func TestCredentialsInErrors(t *testing.T) {
	for _, text := range []string{
		`backends: {second: {uri: "mongodb://boss:s3cr3t@h}}`,
		"backends: {second: mongodb://boss:s3cr3t@h}",
		"backends: mongodb://boss:s3cr3t@h",
		"backends:\n  second:\n    mongodb+srv://boss:s3cr3t@h: x",
		"backends:\n  second:\n    uri: [mongodb://boss:s3cr3t@h]",
		"backends: {second: {uri: mongodb://boss:s3cr3t@h, uri: mongodb://boss:s3cr3t@h}}",
		"databases: {a: mongodb://boss:s3cr3t/@more@h}",
		"listen: mongodb://boss:s3cr3t@h",
		"mongodb://boss:s3cr3t@h: {}",
	} {
		_, err := Parse("oxbow.yaml", []byte(text))
		if err == nil || strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "more") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
