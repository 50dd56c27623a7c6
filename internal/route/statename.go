package route

// String returns the state's name as the catalog stores it and operators see it.
func (s State) String() string {
	switch s {
	case Creating:
		return "creating"
	case Active:
		return "active"
	case Hidden:
		return "hidden"
	case Dropping:
		return "dropping"
	}
	return "unknown"
}
