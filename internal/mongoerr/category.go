package mongoerr

// NotPrimary reports whether the code says that a member of a replica set is no primary, or none any more: MongoDB's category NotPrimaryError.
func (c Code) NotPrimary() bool {
	switch c {
	case LegacyNotPrimary, NotWritablePrimary, NotPrimaryNoSecondaryOk, NotPrimaryOrSecondary, PrimarySteppedDown, InterruptedDueToReplState:
		return true
	}
	return false
}

// Shutdown reports whether the code says that a server leaves: MongoDB's category ShutdownError.
func (c Code) Shutdown() bool { return c == ShutdownInProgress || c == InterruptedAtShutdown }

// Retryable reports whether a driver may send a read or a retryable write again after the code
// (https://github.com/mongodb/specifications, retryable writes and retryable reads).
func (c Code) Retryable() bool {
	switch c {
	case HostUnreachable, HostNotFound, NetworkTimeout, SocketException, ExceededTimeLimit:
		return true
	}
	return c.NotPrimary() || c.Shutdown()
}
