package main

import (
	"strings"
	"testing"

	"oxbow/internal/config"
)

func TestPasswordPrintsAnEntry(t *testing.T) {
	var out, stderr strings.Builder
	c := passwordCommand()
	c.SetArgs([]string{"ada@shop"})
	c.SetIn(strings.NewReader("tide\n"))
	c.SetOut(&out)
	c.SetErr(&stderr)
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "tide") {
		t.Errorf("the password itself is in\n%s", out.String())
	}
	if err := writeUser(&out, "eve@shop", "tide"); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse("printed", []byte("users:\n"+out.String())) // one below the other
	if err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	if len(cfg.Users) != 2 || cfg.Users[0].String() != "ada@shop" || len(cfg.Users[0].Credentials) != 2 || !cfg.Authorize {
		t.Errorf("%+v", cfg)
	}
	for _, bad := range []string{"ada", "@shop", "ada@", "CN=loader,O=Shop@$external"} {
		if err := writeUser(&out, bad, "tide"); err == nil {
			t.Errorf("%q is taken for a user", bad)
		}
	}
}
