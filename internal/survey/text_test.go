package survey

import (
	"strings"
	"testing"
)

// TestOthersNames: names that applications gave have no power over the terminal, and stay in their row.
func TestOthersNames(t *testing.T) {
	const evil = "im.\x1b[31mred\nSERIOUS  large  im.other\n\ttab"
	r := &Report{
		Survey:   &Survey{Collections: []Collection{{Namespace: evil}}, Missing: []string{evil}},
		Findings: []Finding{{ID: "large", About: evil, Title: evil, Evidence: evil, Mend: []string{evil}}},
	}
	var text strings.Builder
	if err := r.Print(&text); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "\x1b") || strings.Contains(text.String(), "\nSERIOUS  large  im.other") || strings.Contains(text.String(), "\n\ttab") {
		t.Errorf("%q", text.String())
	}
}
