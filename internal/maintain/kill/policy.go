package kill

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oxbow/internal/operation"
)

// Policy says what becomes of operations that read a whole collection for want of an index. It concerns an operation when all of it is true.
type Policy struct {
	Name       string        // for the history
	Kinds      []string      // of operation.Kinds; nil: all of these
	Namespaces []string      // "db.collection", "db.*" or "*"; nil: all
	Documents  int64         // the collection has more; 0: DefaultDocuments
	Older      time.Duration // it runs for longer; 0: DefaultOlder
	Action     Action
}

// What a policy that does not say it concerns.
const (
	DefaultDocuments = 1_000_000
	DefaultOlder     = 30 * time.Second
)

// Action is what becomes of an operation.
type Action int

// The actions, each of which does what those before it do.
const (
	Log Action = iota
	Alert
	Kill
)

var actions = []string{"log", "alert", "kill"}

// String is the action's word in a configuration.
func (a Action) String() string { return actions[a] }

// ParseAction reads the word of an action.
func ParseAction(text string) (Action, error) {
	if i := slices.Index(actions, text); i >= 0 {
		return Action(i), nil
	}
	return 0, fmt.Errorf("%q is no action: there are %s", text, strings.Join(actions, ", "))
}

// Check returns what is wrong with a policy.
func (p *Policy) Check() error {
	for _, k := range p.Kinds {
		if !slices.Contains(operation.Kinds, k) {
			return fmt.Errorf("%q is no kind of operation: there are %s", k, strings.Join(operation.Kinds, ", "))
		}
	}
	for _, n := range p.Namespaces {
		if database, collection, ok := strings.Cut(n, "."); n != "*" && (!ok || database == "" || collection == "") {
			return fmt.Errorf("%q is no namespace: write DATABASE.COLLECTION, DATABASE.* or *", n)
		}
	}
	if p.Documents < 0 || p.Older < 0 {
		return errors.New("documents and older must not be negative")
	}
	return nil
}

// may reports whether the policy may concern an operation, before its plan and its collection are looked at.
func (p *Policy) may(o *operation.Operation) bool {
	kinds := p.Kinds
	if kinds == nil {
		kinds = operation.Kinds
	}
	return o.Internal == "" && !o.AllowsScan() && slices.Contains(kinds, o.Kind) && o.Age >= cmp.Or(p.Older, DefaultOlder) && p.covers(o.Namespace)
}

func (p *Policy) covers(namespace string) bool {
	database, _, _ := strings.Cut(namespace, ".")
	return p.Namespaces == nil || slices.ContainsFunc(p.Namespaces, func(n string) bool { return n == "*" || n == namespace || n == database+".*" })
}

// reason says why the policy concerns an operation that it may concern, on a collection of so many documents; "" where it does not.
func (p *Policy) reason(o *operation.Operation, documents int64) string {
	most := cmp.Or(p.Documents, DefaultDocuments)
	if !o.Scans() || documents <= most {
		return ""
	}
	return fmt.Sprintf("%s without an index (%s) on %s, which has %d documents, more than %d; it runs for %s, longer than %s", o.Kind, o.Plan, o.Namespace, documents, most,
		o.Age.Round(100*time.Millisecond), cmp.Or(p.Older, DefaultOlder))
}

// strictest is the policy that concerns an operation with the strongest action, and its reason; nil: none does.
func strictest(policies []Policy, o *operation.Operation, documents int64) (*Policy, string) {
	var chosen *Policy
	why := ""
	for i := range policies {
		p := &policies[i]
		if !p.may(o) || chosen != nil && p.Action <= chosen.Action {
			continue
		}
		if reason := p.reason(o, documents); reason != "" {
			chosen, why = p, reason
		}
	}
	return chosen, why
}
