package mongoerr

import (
	"errors"
	"fmt"

	"oxbow/internal/bson"
)

// Error is what a client sees when a command, or one write of it, fails.
type Error struct {
	Code    Code
	Message string
	Labels  []string      // errorLabels, such as RetryableWriteError
	Info    bson.Document // further fields of the error (keyPattern, keyValue of a duplicate key), or nil
}

// New returns an error with the formatted message.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error gives the message with the code's name, for logs.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// From returns err as an Error: the one it wraps, or InternalError with its text.
func From(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return New(InternalError, "%s", err)
}

// Is reports whether err is, or wraps, an Error with the code.
func Is(err error, code Code) bool {
	if err == nil {
		return false
	}
	var e *Error
	return errors.As(err, &e) && e.Code == code
}
