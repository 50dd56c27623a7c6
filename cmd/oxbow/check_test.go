package main

import "testing"

func TestCheck(t *testing.T) {
	file := writeFile(t, "oxbow.yaml", `backends:
  local: {embedded: ./data}
collections:
  fla.logGset:
    time: {field: time, unit: s, every: day, zone: Asia/Shanghai}
    keep: 2d
    hold: 1h
    ahead: 2
  im.user: {hash: {field: uid, count: 64}}
  fla.endless:
    time: {field: time, every: month}
`)
	stdout, _, err := oxbowCommand(t, nil, "check", "-c", file)
	if err != nil {
		t.Fatal(err)
	}
	rows := partitionRows(stdout)
	// Two days, one for the hold, the one being filled, two ahead.
	if got := rows[0]; got[0] != "fla.logGset" || got[1] != "6" || got[2] != "6" {
		t.Errorf("fla.logGset comes to %q, want 6 ranges and 6 partitions", got)
	}
	if got := rows[1]; got[0] != "im.user" || got[1] != "1" || got[2] != "64" {
		t.Errorf("im.user comes to %q, want 1 range and 64 partitions", got)
	}
	wantText(t, stdout, "warning: fla.endless: has no keep")
}

func TestCheckRefuses(t *testing.T) {
	file := writeFile(t, "oxbow.yaml", `collections:
  fla.log:
    time: {field: time, every: minute}
    hash: {field: dev, count: 64}
    keep: 2d
`)
	stdout, _, err := oxbowCommand(t, nil, "check", "-c", file)
	wantError(t, err, "more than can be carried")
	wantText(t, stdout, "error: fla.log: comes to")
}

func TestCheckErrors(t *testing.T) {
	file := writeFile(t, "oxbow.yaml", "collections:\n  fla.log:\n    time: {field: time, every: fortnight}\n")
	_, _, err := oxbowCommand(t, nil, "check", "-c", file)
	wantError(t, err, "oxbow.yaml:3", "every", "fortnight")
	_, _, err = oxbowCommand(t, nil, "check", "-c", file+"x")
	wantError(t, err, file+"x")
	_, _, err = oxbowCommand(t, nil, "check")
	wantError(t, err, `"config"`)
	_, _, err = oxbowCommand(t, nil, "check", file)
	wantError(t, err, "-c", file)
	file = writeFile(t, "tls.yaml", "tls: {certificate: /nowhere/server.pem, key: /nowhere/server-key.pem}\n")
	_, _, err = oxbowCommand(t, nil, "check", "-c", file)
	wantError(t, err, "/nowhere/server.pem")
	file = writeFile(t, "http.yaml", "http: {listen: 127.0.0.1:8017, token: /nowhere/token}\n")
	_, _, err = oxbowCommand(t, nil, "check", "-c", file)
	wantError(t, err, "/nowhere/token")
}
