package command

import "oxbow/internal/bson"

// names are the names in a connection's last command. The next one mostly has the same, which then cost no allocation.
type names struct{ database, collection, namespace string }

// longestName is the longest that is kept, in bytes; a namespace may have 255.
const longestName = 255

// names are those of the request's connection.
func (r *Request) names() *names {
	if r.Conn == nil {
		return new(names) // a command inside of another
	}
	return &r.Conn.names
}

// same returns the text of a string value, as the last one where it is the same.
func same(last *string, v bson.Value) string {
	text := v.Data[4 : len(v.Data)-1]
	switch {
	case string(text) == *last:
		return *last
	case len(text) > longestName:
		return string(text)
	}
	*last = string(text)
	return *last
}

// of returns "database.collection".
func (n *names) of(database, collection string) string {
	at := len(database)
	if ns := n.namespace; len(ns) == at+1+len(collection) && ns[:at] == database && ns[at] == '.' && ns[at+1:] == collection {
		return ns
	}
	ns := database + "." + collection
	if len(ns) <= longestName {
		n.namespace = ns
	}
	return ns
}
