package backend

import (
	"errors"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// ErrUnavailable marks errors of commands that certainly did not run.
var ErrUnavailable = errors.New("backend unavailable")

// Check returns the error that a reply carries when its ok is not 1, as a *mongoerr.Error with the server's own code,
// message and labels. writeErrors and writeConcernError do not count: a reply with those has ok: 1.
func Check(reply bson.Document) error {
	var (
		ok     bool
		code   int64
		msg    string
		labels []string
	)
	it := bson.Elements(reply)
	for it.Next() {
		v := it.Value()
		switch string(it.Key()) {
		case "ok":
			f, isNumber := v.AsFloat64OK()
			ok = isNumber && f == 1
		case "code":
			code, _ = v.AsInt64OK()
		case "errmsg":
			msg, _ = v.StringValueOK()
		case "errorLabels":
			labels = stringsOf(v)
		}
	}
	if ok {
		return nil
	}
	if code == 0 {
		code = int64(mongoerr.UnknownError)
	}
	return &mongoerr.Error{Code: mongoerr.Code(code), Message: msg, Labels: labels}
}

func stringsOf(v bson.Value) []string {
	a, ok := v.ArrayOK()
	if !ok {
		return nil
	}
	var out []string
	it := bson.Elements(a)
	for it.Next() {
		if s, ok := it.Value().StringValueOK(); ok {
			out = append(out, s)
		}
	}
	return out
}
