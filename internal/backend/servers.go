package backend

// Servers is what is known of the servers behind a backend. The zero value: none has answered yet.
type Servers struct {
	WireVersion int32 // the lowest maxWireVersion of those that have answered; 0: not known
	Standalone  bool  // it is one server that is no member of a replica set, and so refuses transaction numbers
}

// Described is a backend that can tell of the servers behind it. One that is not has the abilities of this very process.
type Described interface {
	Servers() Servers
}

// Weakest returns what every one of the backends can do, as far as they are known.
func Weakest(backends map[string]Backend) Servers {
	var all Servers
	for _, b := range backends {
		d, ok := b.(Described)
		if !ok {
			continue
		}
		s := d.Servers()
		if s.WireVersion != 0 && (all.WireVersion == 0 || s.WireVersion < all.WireVersion) {
			all.WireVersion = s.WireVersion
		}
		all.Standalone = all.Standalone || s.Standalone
	}
	return all
}
