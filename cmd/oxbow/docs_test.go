package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"oxbow"
	"oxbow/internal/auth"
	"oxbow/internal/config"
)

// yamlBlock is an example of a file in a page.
var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestExamplesOfConfigurations: what the pages show of a configuration is one that can be copied as it stands, but for salted passwords, which each makes for itself.
func TestExamplesOfConfigurations(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	salted := map[string]string{}
	for mechanism, elided := range map[auth.Mechanism]string{auth.SHA256: "15000$…", auth.SHA1: "10000$…"} {
		c, err := auth.NewCredential(mechanism, "ada", "tide")
		if err != nil {
			t.Fatal(err)
		}
		salted[elided] = c.String()
	}
	examples := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			example := block[1]
			if strings.HasPrefix(example, "# prometheus.yml") {
				continue
			}
			examples++
			for elided, credential := range salted {
				example = strings.ReplaceAll(example, elided, credential)
			}
			cfg, err := config.Parse(filepath.Base(page), []byte(example))
			if err == nil {
				err = oxbow.CheckJobs(cfg)
			}
			if err != nil {
				t.Errorf("%s: %v in\n%s", page, err, example)
			}
		}
	}
	if examples < 10 {
		t.Errorf("only %d examples were found", examples)
	}
}
