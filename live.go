package oxbow

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/backend/remote"
	"oxbow/internal/bson"
	"oxbow/internal/config"
)

// Deployment is what a backend's servers say of themselves.
type Deployment struct {
	Backend     string // its name in the configuration
	Kind        string // "router", "replica set NAME" or "standalone"
	Version     string // such as "7.0.14"
	WireVersion int32  // the highest that the answering server speaks
	Err         error  // why nothing is known, or nil
}

// Ask asks every backend of a configuration that has a URI what it is, for as long as the URI lets it be looked for.
func Ask(ctx context.Context, cfg *config.Config) []Deployment {
	var all []Deployment
	for _, b := range cfg.Backends {
		if b.URI == "" {
			continue
		}
		d := Deployment{Backend: b.Name}
		d.Err = d.ask(ctx, b.URI)
		all = append(all, d)
	}
	return all
}

func (d *Deployment) ask(ctx context.Context, uri string) error {
	b, err := remote.Open(uri)
	if err != nil {
		return err
	}
	defer b.Close()
	hello, err := answer(ctx, b, "hello")
	if err != nil {
		return err
	}
	d.Kind = kindOf(hello)
	wire, _ := bson.Get(hello, "maxWireVersion")
	d.WireVersion, _ = wire.AsInt32OK()
	build, err := answer(ctx, b, "buildInfo")
	if err != nil {
		return err
	}
	version, _ := bson.Get(build, "version")
	d.Version, _ = version.StringValueOK()
	return nil
}

// answer runs a command that has no arguments.
func answer(ctx context.Context, b backend.Backend, name string) (bson.Document, error) {
	return backend.Ask(ctx, b, backend.Command("admin", func(dst []byte) []byte { return bsoncore.AppendInt32Element(dst, name, 1) }))
}

// kindOf tells by a reply to hello what kind of server gave it (https://www.mongodb.com/docs/manual/reference/command/hello/).
func kindOf(hello bson.Document) string {
	if msg, _ := bson.Get(hello, "msg"); msg.Type == bson.TypeString && msg.StringValue() == "isdbgrid" {
		return "router"
	}
	if set, ok := bson.Get(hello, "setName"); ok {
		name, _ := set.StringValueOK()
		return "replica set " + name
	}
	return "standalone"
}
