package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxDuration bounds keep and hold, so that subtracting them from now never overflows.
const maxDuration = 100 * 366 * 24 * time.Hour

// ParseDuration reads one or more whole numbers with a unit: "1d", "36h", "1d12h". Units are w, d, h, m (minutes) and s; days are of 24
// hours. "0" needs none.
func ParseDuration(text string) (time.Duration, error) {
	units := map[byte]time.Duration{'w': 7 * 24 * time.Hour, 'd': 24 * time.Hour, 'h': time.Hour, 'm': time.Minute, 's': time.Second}
	if text == "0" {
		return 0, nil
	}
	var total time.Duration
	rest := text
	for rest != "" {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		if digits == 0 || digits == len(rest) {
			return 0, fmt.Errorf("%q is not a duration such as 90m, 36h, 1d or 2w", text)
		}
		unit, ok := units[rest[digits]]
		if !ok {
			return 0, fmt.Errorf("%q is not a duration such as 90m, 36h, 1d or 2w: there is no unit %q", text, rest[digits:])
		}
		n, err := strconv.ParseInt(rest[:digits], 10, 64)
		if err != nil || n > int64(maxDuration/unit) || total+time.Duration(n)*unit > maxDuration {
			return 0, fmt.Errorf("%q is longer than 100 years", text)
		}
		total += time.Duration(n) * unit
		rest = rest[digits+1:]
	}
	return total, nil
}

// ParseSize reads a number of bytes: "512MiB", "64MB", "1GiB", "4096".
func ParseSize(text string) (int64, error) {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	units := map[string]int64{"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
	unit, known := units[strings.TrimSpace(text[digits:])]
	n, err := strconv.ParseInt(text[:digits], 10, 64)
	if err != nil || !known || n <= 0 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is not a size such as 512MiB or 2GiB", text)
	}
	return n * unit, nil
}
