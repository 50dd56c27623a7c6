package throttle_test

import (
	"strings"
	"testing"
	"time"

	"oxbow/internal/throttle"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"lag<2s..30s", "lag<2s..30s"},
		{"lag<30s", "lag<6s..30s"},
		{"latency<2x", "latency<1.2x..2x"},
		{"latency<20ms..80ms, canary<1s", "latency<20ms..80ms canary<500ms..1s"},
		{"oplog>2h..30m", "oplog>2h0m0s..30m0s"},
		{"disk>20%..0%", "disk>20%..0%"},
		{"dirty<12.5%", "dirty<6.25%..12.5%"},
		{"queue<128 cpu=off  primary=off", "primary=off queue<16..128 cpu=off"},
		{"floor=5ms ignore=a:27017,ignore=b:27017", "floor=5ms ignore=a:27017 ignore=b:27017"},
	} {
		s, err := throttle.Parse(c.text)
		if err != nil || s.String() != c.want {
			t.Errorf("%q is %q, not %q; %v", c.text, s.String(), c.want, err)
		}
		again, err := throttle.Parse(s.String())
		if err != nil || again.String() != c.want {
			t.Errorf("%q read again is %q; %v", c.want, again.String(), err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"lag":              "write NAME<SLOW..STOP",
		"log<2s":           "no probe has this name: there are primary, majority, lag",
		"lag>2s..1s":       "write lag<…",
		"disk<2%":          "write disk>…",
		"lag<30s..2s":      "slow before it stops",
		"disk>2%..15%":     "slow before it stops",
		"lag<2s..2s":       "slow before it stops",
		"lag<2":            "measured in time",
		"lag<2x":           "measured in time",
		"latency<0.5x":     "above 1",
		"latency<NaNx":     "above 1",
		"latency<1.1x..5s": "both are times, or both multiples",
		"dirty<5":          "in percent",
		"dirty<500%":       "in percent",
		"queue<a":          "it is a number",
		"majority<3":       "no thresholds",
		"cpu=on":           "only off",
		"floor=0s":         "a duration above 0",
		"ignore=":          "names a member",
	} {
		if _, err := throttle.Parse("queue<9 " + text); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), `"`+text+`"`) {
			t.Errorf("%q: %v, not %q", text, err, want)
		}
	}
}

// TestWithLeavesTheRest changes one probe of several, and keeps the settings that it came from.
func TestWithLeavesTheRest(t *testing.T) {
	before, err := throttle.Parse("lag<30s ignore=a:1")
	if err != nil {
		t.Fatal(err)
	}
	after, err := before.With("lag=off floor=3ms ignore=b:1")
	if err != nil {
		t.Fatal(err)
	}
	if before.String() != "lag<6s..30s ignore=a:1" || after.String() != "lag=off floor=3ms ignore=a:1 ignore=b:1" {
		t.Errorf("%s; %s", before, after)
	}
	if after.Floor() != 3*time.Millisecond || !after.Ignores("b:1") || after.Ignores("c:1") || !after.Of(throttle.Lag).Off || after.Of(throttle.Queue).Stop != 64 {
		t.Errorf("%+v", after)
	}
}

// FuzzParse: what is read prints as text that reads the same, and nothing panics.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"lag<2s..30s", "latency<1.1x..2x floor=5ms", "disk>15%..2%,ignore=a:1", "cpu=off", "<>=..", "oplog>1h", "queue<1..2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := throttle.Parse(text)
		if err != nil {
			return
		}
		printed := s.String()
		again, err := throttle.Parse(printed)
		if err == nil && again.String() != printed {
			t.Errorf("%q prints as %q, and this as %q", text, printed, again)
		}
		for _, name := range throttle.Names() {
			if th := s.Of(name); !th.Off && th.Slow == th.Stop && th.Slow != 0 {
				t.Errorf("%q: %s slows where it stops", text, name)
			}
		}
	})
}
