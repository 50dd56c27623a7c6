// Package terminal writes text that others chose, such as the names of collections, applications and jobs, so that a terminal shows it and does not obey it: control
// characters, of which the sequences are made that move the cursor, change titles or colours, or write over what stands there, come out as escapes. And so that a
// shell into which a command is pasted takes it for one argument.
package terminal
