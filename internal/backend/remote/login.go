package remote

import (
	"context"
	"errors"

	"oxbow/internal/mongoerr"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/auth"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// refusedLogin returns why a login failed, if it did for a reason that the next try has too: the server knows no such user, password, mechanism or
// certificate. A connection that broke during the login, a time that was up and a server that steps down say nothing about the login.
func refusedLogin(err error) (*auth.Error, bool) {
	var login *auth.Error
	if !errors.As(err, &login) {
		return nil, false
	}
	var broken topology.ConnectionError
	if why := login.Inner(); errors.As(why, &broken) || errors.Is(why, context.Canceled) || errors.Is(why, context.DeadlineExceeded) {
		return nil, false
	}
	var answered driver.Error
	if errors.As(login.Inner(), &answered) && (answered.NetworkError() || mongoerr.Code(answered.Code).Retryable()) {
		return nil, false
	}
	return login, true
}
