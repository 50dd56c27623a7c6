package backend

import (
	"context"
	"testing"

	"oxbow/internal/bson"
)

// alike is a backend on servers.
type alike Servers

func (alike) Run(context.Context, *Request) (bson.Document, error) { return nil, ErrUnavailable }
func (alike) Abilities() Abilities                                 { return Abilities{} }
func (alike) Close() error                                         { return nil }
func (a alike) Servers() Servers                                   { return Servers(a) }

// undescribed is a backend in this process.
type undescribed struct{ Backend }

func TestWeakest(t *testing.T) {
	for _, test := range []struct {
		backends map[string]Backend
		want     Servers
	}{
		{nil, Servers{}},
		{map[string]Backend{"a": undescribed{}}, Servers{}},
		{map[string]Backend{"a": undescribed{}, "b": alike{}}, Servers{}},
		{map[string]Backend{"a": undescribed{}, "b": alike{WireVersion: 17}, "c": alike{}}, Servers{WireVersion: 17}},
		{map[string]Backend{"a": alike{WireVersion: 9}, "b": alike{WireVersion: 17, Standalone: true}}, Servers{WireVersion: 9, Standalone: true}},
	} {
		if got := Weakest(test.backends); got != test.want {
			t.Errorf("%v are %+v, not %+v", test.backends, got, test.want)
		}
	}
}
