package config

import "strings"

// isConnectionString reports whether a text has a scheme of MongoDB's connection strings and something behind it. The driver checks the rest when
// the backend is opened.
func isConnectionString(text string) bool {
	for _, scheme := range []string{"mongodb://", "mongodb+srv://"} {
		if rest, ok := strings.CutPrefix(text, scheme); ok && rest != "" {
			return true
		}
	}
	return false
}

// size returns the bytes of a key's value, 0 when it is absent or wrong.
func (m *mapping) size(key string) int64 {
	text, n := m.text(key)
	if n == nil {
		return 0
	}
	bytes, err := ParseSize(text)
	if err != nil {
		m.add(n, m.child(key), "%v", err)
	}
	return bytes
}
