package engine

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// comparer orders keys by their bytes and splits them so that a bloom filter answers for a whole document key, for the fields of an index
// entry whatever its _id, and for a session's retry records. Its name is on disk: another split needs another name.
var comparer = func() *pebble.Comparer {
	c := *pebble.DefaultComparer
	c.Name = "oxbow.1"
	c.Split = split
	return &c
}()

// split returns the length of the part of a key that bloom filters know.
func split(key []byte) int {
	if len(key) == 0 {
		return 0
	}
	switch key[0] {
	case kindRetry:
		return min(len(key), retryPrefixLen)
	case kindData:
		if len(key) <= partPrefixLen {
			return len(key)
		}
		if part := binary.BigEndian.Uint16(key[tablePrefixLen:]); part == partDocuments || part >= partArrays {
			return len(key)
		}
		return splitEntry(key)
	}
	return len(key)
}

// merger adds counters up. Its name is on disk.
var merger = &pebble.Merger{
	Name: "oxbow.counters.1",
	Merge: func(_, value []byte) (pebble.ValueMerger, error) {
		c, err := readCounters(value)
		return &counterMerger{sum: c}, err
	},
}

// counters are a table's figures, or a batch's share of them.
type counters struct {
	documents int64
	bytes     int64 // of BSON
}

const countersLen = 16

func (c *counters) add(o counters) {
	c.documents += o.documents
	c.bytes += o.bytes
}

func (c counters) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(c.documents))
	return binary.LittleEndian.AppendUint64(dst, uint64(c.bytes))
}

func readCounters(b []byte) (counters, error) {
	if len(b) != countersLen {
		return counters{}, fmt.Errorf("read counters: %d bytes instead of %d", len(b), countersLen)
	}
	return counters{
		documents: int64(binary.LittleEndian.Uint64(b)),
		bytes:     int64(binary.LittleEndian.Uint64(b[8:])),
	}, nil
}

type counterMerger struct{ sum counters }

func (m *counterMerger) MergeNewer(value []byte) error {
	c, err := readCounters(value)
	m.sum.add(c)
	return err
}

func (m *counterMerger) MergeOlder(value []byte) error { return m.MergeNewer(value) }

func (m *counterMerger) Finish(bool) ([]byte, io.Closer, error) {
	return m.sum.append(nil), nil, nil
}
