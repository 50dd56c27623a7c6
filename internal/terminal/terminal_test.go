package terminal

import (
	"bytes"
	"fmt"
	"os/exec"
	"testing"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "",
		"im.离线 — größer":                       "im.离线 — größer",
		"red\x1b[31m":                          `red\x1b[31m`,
		"two\nlines\tand\ra title\x1b]0;x\x07": `two\nlines\tand\x0da title\x1b]0;x\x07`,
		"C1 \u009b31m, DEL \x7f":               `C1 \u009b31m, DEL \x7f`,
		"no UTF-8 \x9b31m":                     `no UTF-8 \x9b31m`,
		"turned \u202egnp.exe":                 `turned \u202egnp.exe`,
	} {
		if got := Text(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestLines(t *testing.T) {
	var out bytes.Buffer
	if n, err := fmt.Fprint(Lines(&out), "a\tb\n\x1b[2Jc\n"); err != nil || n != 10 || out.String() != "a\tb\n\\x1b[2Jc\n" {
		t.Errorf("%d, %v: %q", n, err, out.String())
	}
}

// TestArgument: a shell takes each as one word, as it is.
func TestArgument(t *testing.T) {
	for _, text := range []string{"", "db.c", "mongodb://h/?a=b&c=d", "it's", "a; touch x", "$(touch x)", "`x`", "a b", "a\nb", "-x", "größer"} {
		out, err := exec.Command("sh", "-c", "printf %s "+Argument(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q became %q, %v", text, out, err)
		}
	}
}
