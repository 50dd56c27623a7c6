package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"oxbow/internal/load"
)

// loadOptions are the flags of load.
type loadOptions struct {
	uri, ns, format string
	load.Options
}

func loadCommand() *cobra.Command {
	var o loadOptions
	c := &cobra.Command{
		Use:   "load --ns DB.COLL FILE",
		Short: "Load Extended JSON lines or CSV into a collection",
		Long: "Load a file, or standard input with -, into a collection: Extended JSON, a document a line, or CSV whose header names the fields (time:date,dev:long,text).\n" +
			"Documents that the server refuses are listed and passed over. After a stop it says how to go on.",
		Args: oneArgument("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := interruptible(c)
			defer stop()
			return runLoad(ctx, o, args[0], c.InOrStdin(), c.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&o.uri, "uri", defaultURI, "connection string")
	c.Flags().StringVar(&o.ns, "ns", "", "namespace, DATABASE.COLLECTION")
	c.Flags().StringVar(&o.format, "format", "", "json or csv; by default by the file's name, json on standard input")
	c.Flags().IntVar(&o.Batch, "batch", 1000, "documents an insert")
	c.Flags().IntVar(&o.Workers, "workers", 2, "inserts at a time")
	c.Flags().IntVar(&o.From, "from-line", 1, "line to begin with, to go on after a stop")
	c.MarkFlagRequired("ns")
	return c
}

// maxShown bounds the refused documents that are listed.
const maxShown = 20

func runLoad(ctx context.Context, o loadOptions, file string, stdin io.Reader, stderr io.Writer) error {
	database, collection, err := namespace(o.ns)
	if err != nil {
		return err
	}
	in, size, err := openInput(file, stdin)
	if err != nil {
		return err
	}
	defer in.Close()
	read := &countingReader{Reader: in}
	source, err := newSource(o.format, file, read)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	client, err := connect(ctx, o.uri)
	if err != nil {
		return err
	}
	defer client.Disconnect(context.Background())
	p := newProgress(stderr, "loading "+file, size)
	shown := 0
	o.Failed = func(line int, err error) {
		if shown++; shown <= maxShown {
			p.print(fmt.Sprintf("%s:%d: %s", file, line, err))
		}
	}
	o.Progress = func(stored int64, _ int) { p.set(read.n.Load(), stored) }
	result, err := load.Run(ctx, client.Database(database).Collection(collection), source, o.Options)
	p.end()
	return reportLoad(stderr, file, result, err)
}

// reportLoad prints what a load came to; documents that were refused make it fail.
func reportLoad(stderr io.Writer, file string, r load.Result, err error) error {
	fmt.Fprintf(stderr, "%s: %d documents stored, %d refused\n", file, r.Stored, r.Failed)
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("stopped: go on with --from-line %d", r.NextLine)
	case err != nil:
		return fmt.Errorf("%s: %w (go on with --from-line %d)", file, err, r.NextLine)
	case r.Failed > 0:
		return fmt.Errorf("%d documents were refused", r.Failed)
	}
	return nil
}

// openInput opens a file, or standard input for "-", and tells its size, 0 if it is not known.
func openInput(file string, stdin io.Reader) (io.ReadCloser, int64, error) {
	if file == "-" {
		return io.NopCloser(stdin), 0, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

func newSource(format, file string, r io.Reader) (load.Source, error) {
	if format == "" && strings.EqualFold(filepath.Ext(file), ".csv") {
		format = "csv"
	}
	switch format {
	case "csv":
		return load.NewCSV(r)
	case "", "json":
		return load.NewJSONLines(r), nil
	}
	return nil, fmt.Errorf("unknown --format %q: json or csv", format)
}

// countingReader counts what was read.
type countingReader struct {
	io.Reader
	n atomic.Int64
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n.Add(int64(n))
	return n, err
}
