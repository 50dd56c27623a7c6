package backend

// Figures are how the connections to a deployment are used.
type Figures struct {
	Open     int    // connections that commands go over
	InUse    int    // connections that run a command
	Lined    int    // commands that wait for a connection
	Choosing int    // commands that wait for a server that takes them, such as a new primary
	Refused  int64  // commands turned away at once, since the start
	Circuit  string // one of Circuits
}

// Circuits are the states of a circuit: commands go; some are turned away, since others wait too long for a connection; none goes; none goes while one
// is tried.
var Circuits = [...]string{"closed", "crowded", "open", "half-open"}
