// Package admintest asks an admin server from tests, which alone import it.
package admintest

import (
	"io"
	"net"
	"net/http"
	"testing"
)

// Get asks the server at an address for a path, with a bearer token unless that is "", and returns the status and the body.
func Get(t testing.TB, addr net.Addr, path, token string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr.String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}
