// Package throttle tells jobs how fast they may go: probes look at a deployment, each on its own; a verdict is made of what they found last; workers
// read the verdict and are paced by it.
//
// It knows no jobs and sends nothing but its probes' questions.
//
// Invariants: any one probe slows or stops; a probe that failed, or did not answer in time, stops; every verdict but go has a reason, and a change of
// verdict is logged once; what a server does not report makes a probe absent, by name, and not failed; limits and thresholds can be changed at any time;
// a low disk raises the pace, never past a stop.
//
// A file a probe. cmd and the root package make a Throttle for each deployment that jobs work on, and give each job a Pace of it, a maintain.Throttle.
package throttle
