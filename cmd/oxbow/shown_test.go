package main

import (
	"bytes"
	"strings"
	"testing"

	"oxbow/internal/maintain"
	"oxbow/internal/operation"
)

// TestOthersText: what clients chose, such as the name of an application, of a field or of a job, has no power over the terminal, and stays in its row.
func TestOthersText(t *testing.T) {
	const evil = "\x1b[31mred\x1b]0;title\x07\nnext row\rover"
	entry := &maintain.Entry{Reason: evil}
	jobs := []maintain.Status{{ID: evil, Namespace: evil, State: evil, Reason: evil, Owner: evil, Windows: []string{evil}, Last: entry}}
	for name, print := range map[string]func(w *bytes.Buffer) error{
		"ops": func(w *bytes.Buffer) error {
			return printOperations(w, []operation.Operation{{Member: evil, Kind: evil, Namespace: evil, App: evil, Shape: evil, Comment: evil}}, opsFilter{})
		},
		"ops kill": func(w *bytes.Buffer) error {
			return printKilled(w, []killed{{shownOperation: shownOperation{ID: evil, Namespace: evil}, Error: evil}})
		},
		"jobs":       func(w *bytes.Buffer) error { return printJobs(w, jobs) },
		"job":        func(w *bytes.Buffer) error { return printJob(w, &jobs[0]) },
		"history":    func(w *bytes.Buffer) error { w.WriteString(entryLine(entry) + "\n"); return nil },
		"run":        func(w *bytes.Buffer) error { w.WriteString(statusLine(&jobs[0]) + "\n"); return nil },
		"report":     func(w *bytes.Buffer) error { (&purging{}).report(w, &maintain.Status{ID: "a\x1b[31m"}); return nil },
		"partitions": func(w *bytes.Buffer) error { return printPartitions(w, []partition{{Name: evil}}) },
	} {
		var out bytes.Buffer
		if err := print(&out); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(out.String(), "\x1b\x07\r") || strings.Contains(out.String(), "\nnext row") {
			t.Errorf("%s: %q", name, out.String())
		}
	}
}

// TestOrdersNamed: an order that can't be is refused by its flag, before anything is sent: there is no server here.
func TestOrdersNamed(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"--priority: 0 is not from 1":            {"jobs", "set", "a", "--priority", "0"},
		"--priority: 500 is not from 1":          {"jobs", "set", "a", "--priority", "500", "--limit-documents", "5"},
		"--limit-documents: \"Inf\"":             {"jobs", "set", "a", "--limit-documents", "Inf"},
		"--limit-documents: \"5x\"":              {"jobs", "set", "a", "--limit-documents", "5x"},
		"--ns: \"im\" is no namespace":           {"ops", "--ns", "im"},
		"--ns: \"im.\" is no namespace":          {"ops", "kill", "--comment", "c", "--ns", "im."},
		"--older: -5s is less than no time":      {"ops", "--older", "-5s"},
		"--limit-documents: \"NaN/s\" is no num": {"jobs", "set", "a", "--limit-documents", "NaN/s"},
	} {
		_, _, err := oxbowCommand(t, nil, append(args, "--uri", "mongodb://127.0.0.1:1")...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", strings.Join(args, " "), err, want)
		}
	}
}

// TestKillOnNoMember: a member that the deployment does not have is named, with those that it has.
func TestKillOnNoMember(t *testing.T) {
	t.Parallel()
	_, _, err := oxbowCommand(t, nil, "ops", "kill", "--opid", "1", "--member", "nowhere:1", "--uri", openGateway(t, ""))
	if err == nil || !strings.Contains(err.Error(), `there is no "nowhere:1": there are 127.0.0.1:`) {
		t.Error(err)
	}
}
