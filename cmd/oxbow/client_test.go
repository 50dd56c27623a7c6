package main

import (
	"strings"
	"testing"
)

// TestErrorsHideThePassword: a server that can't be reached is named without what stands before its address.
func TestErrorsHideThePassword(t *testing.T) {
	for uri, want := range map[string]string{
		"mongodb://127.0.0.1:27017":                     "mongodb://127.0.0.1:27017",
		"mongodb://me:secret@a,b/?replicaSet=rs1":       "mongodb://a,b/?replicaSet=rs1",
		"mongodb+srv://me:se/cr@et@example.org/?w=1":    "mongodb+srv://example.org/?w=1",
		"mongodb://me:secret@127.0.0.1:1/?bad=option@x": "mongodb://x",
	} {
		if got := withoutPassword(uri); got != want {
			t.Errorf("%s is shown as %s", uri, got)
		}
	}
	_, err := connect(t.Context(), "mongodb://me:secret@127.0.0.1:1/?serverSelectionTimeoutMS=x")
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error: %v", err)
	}
}
