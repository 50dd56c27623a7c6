// Package statement gives MongoDB's data commands their typed form: one pass over a command's raw body into a struct whose
// documents stay raw, with MongoDB's errors for wrong types (14), unknown (40415), missing (40414) and repeated fields (40413).
//
// It runs nothing and compiles no filter: plan and backend/embedded do that with what they find here.
//
// Invariants: pure; a field is either understood, or named as one that is not built, or refused as unknown: none is
// dropped; structs alias the request's bytes.
//
// plan, command and backend/embedded import it.
package statement
