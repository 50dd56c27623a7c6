package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"oxbow"
)

// errSilent makes check fail after it has printed which deployments don't answer.
var errSilent = errors.New("not every deployment answers")

// excluded are clients that refuse a server below a wire version (GODRIVER-4082; the constant MIN_SUPPORTED_WIRE_VERSION of the Node.js driver's releases).
var excluded = []struct {
	below   int32
	clients string
}{
	{9, "the Go driver from 2.9 and the Node.js driver from 7.6, with what is built on them, such as mongosh"},
}

// checkLive prints a line a deployment, and then what clients will find.
func checkLive(w io.Writer, deployments []oxbow.Deployment) error {
	if len(deployments) == 0 {
		_, err := fmt.Fprintln(w, "no deployments: all backends are embedded")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "BACKEND\tIS A\tVERSION\tWIRE VERSION")
	silent := false
	for _, d := range deployments {
		if d.Err != nil {
			silent = true
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\n", d.Backend, d.Kind, d.Version, d.WireVersion)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, d := range deployments {
		advise(w, d)
	}
	if silent {
		return errSilent
	}
	return nil
}

// advise prints what a deployment means to clients, where that is not what they are used to.
func advise(w io.Writer, d oxbow.Deployment) {
	if d.Err != nil {
		fmt.Fprintf(w, "error: %s: %v\n", d.Backend, d.Err)
		return
	}
	if d.Kind == "standalone" {
		fmt.Fprintf(w, "warning: %s: no member of a replica set: Oxbow answers as a server alone, and clients neither retry writes nor begin transactions\n", d.Backend)
	}
	for _, e := range excluded {
		if d.WireVersion < e.below {
			fmt.Fprintf(w, "warning: %s: Oxbow answers with wire version %d: some clients refuse that, such as %s\n", d.Backend, d.WireVersion, e.clients)
		}
	}
}
