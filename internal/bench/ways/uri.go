package ways

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// Server is a Host on a server that is there already: it fills a database of its own for each way, and drops it afterwards.
type Server struct {
	Client   *mongo.Client
	URI      string
	Database string
}

// Open fails where the database holds something: it is about to be dropped.
func (s *Server) Open(ctx context.Context, split bool, fill func(ctx context.Context, p *Place) error) (*Place, error) {
	names, err := s.Client.Database(s.Database).ListCollectionNames(ctx, bson.D{})
	if err != nil {
		return nil, fmt.Errorf("look into database %s: %w", s.Database, err)
	}
	if len(names) > 0 {
		return nil, fmt.Errorf("database %s holds %s: name one that is empty, since it is filled for each way and dropped", s.Database, names[0])
	}
	p := &Place{Client: s.Client, URI: s.URI, Database: s.Database, Collection: "log", Memory: MemoryOf(ctx, s.Client)}
	if split {
		p.Split = Daily
	}
	if err := fill(ctx, p); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx), p))
	}
	return p, nil
}

// Close drops the database.
func (s *Server) Close(ctx context.Context, p *Place) error {
	if err := p.Client.Database(s.Database).Drop(ctx); err != nil {
		return fmt.Errorf("drop database %s: %w", s.Database, err)
	}
	return nil
}
