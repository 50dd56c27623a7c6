package kill

import (
	"fmt"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/maintain"
)

// Kind makes the jobs of kind kill on a deployment: of a specification's namespace ("db.collection", "db.*", or "" for all) and its parameters,
// which are those of one policy:
//
//	kinds      list of operation.Kinds; all without it
//	documents  a number
//	older      a text such as "30s"
//	action     "log", "alert" or "kill"; "log" without it
//	dryRun     true: nothing is ended
//	every      a text such as "1s", between two looks
//
// Of o everything is taken but Policies, DryRun and Every.
func Kind(o Options) maintain.Kind {
	return func(spec maintain.Spec) (maintain.Job, error) {
		p := Policy{Name: spec.ID}
		if spec.Namespace != "" {
			p.Namespaces = []string{spec.Namespace}
		}
		mine := o
		if err := readParameters(spec.Parameters, &p, &mine); err != nil {
			return nil, maintain.Permanent(fmt.Errorf("parameters: %w", err))
		}
		mine.Policies = []Policy{p}
		job, err := New(mine)
		if err != nil {
			return nil, maintain.Permanent(err)
		}
		return job, nil
	}
}

func readParameters(doc bson.Document, p *Policy, o *Options) error {
	it := bson.Elements(doc)
	for len(doc) > 0 && it.Next() {
		key, v := string(it.Key()), it.Value()
		var err error
		switch key {
		case "kinds":
			p.Kinds, err = textsOf(v)
		case "documents":
			n, ok := v.AsInt64OK()
			if !ok || n < 1 {
				err = fmt.Errorf("it must be a whole number above 0")
			}
			p.Documents = n
		case "older":
			p.Older, err = durationOf(v)
		case "every":
			o.Every, err = durationOf(v)
		case "action":
			text, _ := v.StringValueOK()
			p.Action, err = ParseAction(text)
		case "dryRun":
			on, ok := v.BooleanOK()
			if !ok {
				err = fmt.Errorf("it must be true or false")
			}
			o.DryRun = on
		default:
			err = fmt.Errorf("there is no such parameter: there are kinds, documents, older, action, dryRun and every")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

func textsOf(v bson.Value) ([]string, error) {
	list, ok := v.ArrayOK()
	if !ok {
		return nil, fmt.Errorf("it must be a list of texts")
	}
	var texts []string
	it := bson.Elements(list)
	for it.Next() {
		text, ok := it.Value().StringValueOK()
		if !ok {
			return nil, fmt.Errorf("it must be a list of texts")
		}
		texts = append(texts, text)
	}
	return texts, nil
}

func durationOf(v bson.Value) (time.Duration, error) {
	text, ok := v.StringValueOK()
	if !ok {
		return 0, fmt.Errorf(`it must be a text such as "30s"`)
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf(`%q is no time above 0 such as "30s" or "2h"`, text)
	}
	return d, nil
}
