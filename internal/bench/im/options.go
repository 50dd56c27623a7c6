package im

import "time"

// Options tell what load to put on a collection; the zero value of a field is its default.
type Options struct {
	Messages int           // written a second; 0: 1,000
	Logins   int           // a second; 0: 200
	Users    int           // who messages are for, each logging in once in Users/Logins seconds; 0: 20,000
	Duration time.Duration // 0: until the context ends
	Workers  int           // calls at a time, of writers and of logins each; 0: 4
	Size     int           // bytes of a message's document; 0: 4,096
	Mark     bool          // messages that were read get flag 1 and stay; else they are deleted
}

func (o Options) withDefaults() Options {
	for _, n := range []struct {
		of       *int
		standard int
	}{{&o.Messages, 1000}, {&o.Logins, 200}, {&o.Users, 20_000}, {&o.Workers, 4}, {&o.Size, 4096}} {
		if *n.of <= 0 {
			*n.of = n.standard
		}
	}
	return o
}

// Kind is what a call does.
type Kind int

// The kinds of call.
const (
	Write  Kind = iota // one message
	Read               // a user's messages that were not read yet, in the order of their time
	Settle             // mark or delete what was read
	kinds
)

// name names a kind as reports do.
func (o *Options) name(k Kind) string {
	if k == Settle && o.Mark {
		return "mark"
	}
	return [kinds]string{"write", "read", "delete"}[k]
}
