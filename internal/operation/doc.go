// Package operation is what the members of a deployment run at a moment, as they tell it themselves: by age, namespace and shape, with the plan that it is
// run by. It kills an operation on the member where it runs, and looks whether it is gone.
//
// It decides nothing: what is to be killed, and why, is said by an operator or by a policy (maintain/kill).
//
// Invariants: a shape holds nothing of a client's values; an operation that is not an application's own says what it is (Operation.Internal), and is never
// killed here; a member that does not answer is named and keeps nobody from seeing the others.
//
// maintain/kill, survey and the commands import it.
package operation
