package command

// kind is what top, currentOp and serverStatus tell commands apart by.
type kind uint8

// The kinds, in the order in which top has them.
const (
	kindQuery kind = iota
	kindGetMore
	kindInsert
	kindUpdate
	kindRemove
	kindCommand
	kinds
)

// kindNames are the words of the three for a kind, and the field with the statements by which serverStatus counts it, "" for the command as one.
var kindNames = [kinds]struct{ top, operation, counter, statements string }{
	kindQuery:   {"queries", "query", "query", ""},
	kindGetMore: {"getmore", "getmore", "getmore", ""},
	kindInsert:  {"insert", "insert", "insert", "documents"},
	kindUpdate:  {"update", "update", "update", "updates"},
	kindRemove:  {"remove", "remove", "delete", "deletes"},
	kindCommand: {"commands", "command", "command", ""},
}

// kindOf returns the kind of a command.
func kindOf(command string) kind {
	switch command {
	case "find":
		return kindQuery
	case "getMore":
		return kindGetMore
	case "insert":
		return kindInsert
	case "update":
		return kindUpdate
	case "delete":
		return kindRemove
	}
	return kindCommand
}
