package bson_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets properties try more values than rapid's default: numbers that are neighbours are rare.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "5000"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
