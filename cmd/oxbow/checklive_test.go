package main

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"oxbow"
)

func TestCheckLive(t *testing.T) {
	behind := openGateway(t, "")
	file := writeFile(t, "oxbow.yaml", fmt.Sprintf("backends:\n  local: {embedded: ./data}\n  there: {uri: %q}\ndatabases: {\"*\": local}\n", behind))
	stdout, _, err := oxbowCommand(t, nil, "check", "--live", "-c", file)
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, stdout, "there", "router", "7.0.14", "21")

	file = writeFile(t, "oxbow.yaml", "backends:\n  away: {uri: \"mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100\"}\n")
	stdout, _, err = oxbowCommand(t, nil, "check", "--live", "-c", file)
	wantError(t, err, "not every deployment answers")
	wantText(t, stdout, "error: away: ")
}

// TestCheckLiveAdvice: what stands behind can exclude clients, and check says so.
func TestCheckLiveAdvice(t *testing.T) {
	var out bytes.Buffer
	err := checkLive(&out, []oxbow.Deployment{
		{Backend: "old", Kind: "replica set rs1", Version: "4.2.25", WireVersion: 8},
		{Backend: "new", Kind: "replica set rs2", Version: "7.0.14", WireVersion: 21},
		{Backend: "alone", Kind: "standalone", Version: "4.4.29", WireVersion: 9},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `BACKEND  IS A             VERSION  WIRE VERSION
old      replica set rs1  4.2.25   8
new      replica set rs2  7.0.14   21
alone    standalone       4.4.29   9
warning: old: Oxbow answers with wire version 8: some clients refuse that, such as the Go driver from 2.9 and the Node.js driver from 7.6, with what is built on them, such as mongosh
warning: alone: no member of a replica set: Oxbow answers as a server alone, and clients neither retry writes nor begin transactions
`
	if out.String() != want {
		t.Errorf("it prints\n%s", out.String())
	}
	if err := checkLive(&out, []oxbow.Deployment{{Backend: "away", Err: errors.New("nobody there")}}); !errors.Is(err, errSilent) {
		t.Errorf("a silent deployment is %v", err)
	}
}
