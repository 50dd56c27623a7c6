package deployment

import (
	"errors"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// isUnknown reports whether a server does not know a command.
func isUnknown(err error) bool {
	return mongoerr.Is(err, mongoerr.CommandNotFound) || mongoerr.Is(err, mongoerr.CommandNotSupported)
}

// isRefused reports whether a server is there and does not tell: it answered with an error, or takes no login.
func isRefused(err error) bool {
	var answered *mongoerr.Error
	if !errors.As(err, &answered) {
		return false
	}
	return answered.Code == mongoerr.AuthenticationFailed || !errors.Is(err, backend.ErrUnavailable)
}

func text(v bson.Value) string {
	s, _ := v.StringValueOK()
	return s
}

func isTrue(v bson.Value) bool {
	on, _ := v.BooleanOK()
	return on
}

func number(doc []byte, key string) int64 {
	v, _ := bson.Get(doc, key)
	n, _ := v.AsInt64OK()
	return n
}

func seconds(v bson.Value) time.Duration {
	n, _ := v.AsInt64OK()
	return time.Duration(n) * time.Second
}

func texts(v bson.Value) []string {
	if v.Type != bson.TypeArray {
		return nil
	}
	var all []string
	it := bson.Elements(v.Data)
	for it.Next() {
		all = append(all, text(it.Value()))
	}
	return all
}

// textsByName reads a document of strings; nil: it is empty.
func textsByName(v bson.Value) map[string]string {
	if v.Type != bson.TypeDocument {
		return nil
	}
	var all map[string]string
	it := bson.Elements(v.Data)
	for it.Next() {
		if all == nil {
			all = map[string]string{}
		}
		all[string(it.Key())] = text(it.Value())
	}
	return all
}
