package survey

import (
	"strconv"
	"time"

	"oxbow/internal/deployment"
	"oxbow/internal/operation"
)

// Figure is a number that a server may not report.
type Figure struct {
	Value    int64
	Reported bool
}

// Known is a figure that is reported.
func Known(n int64) Figure { return Figure{n, true} }

// notReported stands in the place of a figure that a server does not report.
const notReported = "not reported"

// MarshalJSON gives the number, or null.
func (f Figure) MarshalJSON() ([]byte, error) {
	if !f.Reported {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, f.Value, 10), nil
}

// String gives the number, or says that there is none.
func (f Figure) String() string {
	if !f.Reported {
		return notReported
	}
	return strconv.FormatInt(f.Value, 10)
}

// Survey is what was found out of a deployment.
type Survey struct {
	At          time.Time             `json:"at"`
	Between     time.Duration         `json:"-"` // of the two looks at what changes
	Seconds     float64               `json:"secondsBetweenLooks"`
	Version     string                `json:"version"`
	Members     []Member              `json:"members"`
	Servers     []Server              `json:"servers"`
	Oplogs      []Oplog               `json:"oplogs"`
	Databases   int                   `json:"databases"`
	Count       int                   `json:"collectionCount"` // of all there are
	IndexCount  int                   `json:"indexCount"`      // of those that were looked at
	Collections []Collection          `json:"collections"`
	Operations  []operation.Operation `json:"-"`
	Running     []Running             `json:"operations"`
	Profiled    []Profiled            `json:"profiledScans"`
	Missing     []string              `json:"missing"` // what could not be had, and why
}

// Member is a member as it was found.
type Member struct {
	Host         string            `json:"host"`
	Set          string            `json:"set"`
	State        string            `json:"state"`
	Why          string            `json:"why,omitempty"`
	Hidden       bool              `json:"hidden"`
	DelaySeconds float64           `json:"delaySeconds"`
	Tags         map[string]string `json:"tags,omitempty"`
	Votes        int               `json:"votes"`
	BehindMillis Figure            `json:"behindMillis"` // behind its primary, less its delay

	state deployment.State
}

// Server is what one server that holds data reports of itself. Figures with an After are of the second look.
type Server struct {
	Host            string `json:"host"`
	Set             string `json:"set"`
	UptimeSeconds   Figure `json:"uptimeSeconds"`
	Scans           Figure `json:"collectionScans"` // since its start, of cursors that end
	ScansAfter      Figure `json:"collectionScansAfter"`
	TTLPasses       Figure `json:"ttlPasses"`
	TTLDeleted      Figure `json:"ttlDeleted"`
	TTLDeletedAfter Figure `json:"ttlDeletedAfter"`
	DiskTotal       Figure `json:"diskBytes"`
	DiskUsed        Figure `json:"diskUsedBytes"`
	DataBytes       int64  `json:"dataBytes"` // of the collections that were looked at, on disk, with their indexes
}

// Oplog is one replica set's log.
type Oplog struct {
	Set           string    `json:"set"`
	Member        string    `json:"member"` // that was asked
	SizeBytes     Figure    `json:"sizeBytes"`
	UsedBytes     Figure    `json:"usedBytes"`
	First         time.Time `json:"first"`
	Last          time.Time `json:"last"`
	PeakHourBytes Figure    `json:"peakHourBytes"`
	Sampled       int       `json:"sampledEntries"` // that the peak is told from; 0: the peak is the average
}

// Index is one index of a collection.
type Index struct {
	Name          string `json:"name"`
	Key           string `json:"key"`
	Bytes         Figure `json:"bytes"`
	ExpireSeconds Figure `json:"expireAfterSeconds"`
	Uses          Figure `json:"uses"` // since the server's start
	Unique        bool   `json:"unique"`

	field string // of an index on one field
}

// Collection is what was found out of one collection.
type Collection struct {
	Namespace      string     `json:"ns"`
	Documents      Figure     `json:"documents"`
	DocumentsAfter Figure     `json:"documentsAfter"`
	DataBytes      Figure     `json:"dataBytes"` // uncompressed
	StorageBytes   Figure     `json:"storageBytes"`
	ReusableBytes  Figure     `json:"reusableBytes"` // of the storage, by file: holes
	IndexBytes     Figure     `json:"indexBytes"`
	Indexes        []Index    `json:"indexes"`
	Capped         bool       `json:"capped"`
	Changed        Figure     `json:"updatesAndDeletes"` // since the start of the server that reports them
	ChangedSeconds Figure     `json:"updatesAndDeletesSeconds"`
	Time           *TimeField `json:"timeField"` // nil: none was found
	IDTypes        []Type     `json:"idTypes"`
	Sampled        int        `json:"sampledDocuments"`
	Oldest         time.Time  `json:"oldest"` // by ids or the time field, of the sample
	Newest         time.Time  `json:"newest"`
	LastDay        Figure     `json:"lastDayDocuments"` // about, by the sample's share
	Expired        *Backlog   `json:"ttlBacklog"`

	draws bool // its server draws documents at random without reading all
}

// TimeField is the field that says how old a document is.
type TimeField struct {
	Name  string `json:"name"`
	Types []Type `json:"types"`
}

// Type is how many documents of a sample have a type.
type Type struct {
	Name  string `json:"type"`
	Count int    `json:"count"`
}

// Backlog is what a TTL index has not removed yet.
type Backlog struct {
	Index   string    `json:"index"`
	Field   string    `json:"field"`
	Oldest  time.Time `json:"oldest"` // the oldest document's
	Behind  float64   `json:"behindSeconds"`
	Count   Figure    `json:"documents"` // CountedMost at most
	Expires int64     `json:"expireAfterSeconds"`
}

// Running is an operation that was seen to run, as the JSON has it.
type Running struct {
	Member     string  `json:"member"`
	ID         string  `json:"opid"`
	Kind       string  `json:"kind"`
	Namespace  string  `json:"ns"`
	AgeSeconds float64 `json:"ageSeconds"`
	Plan       string  `json:"plan"`
	Shape      string  `json:"shape"`
}

// Profiled is what the profiler noted of commands of one shape that read a whole collection.
type Profiled struct {
	Namespace string `json:"ns"`
	Kind      string `json:"kind"`
	Shape     string `json:"shape"`
	Count     int    `json:"count"`
	Millis    int64  `json:"millis"` // of all of them

	operation operation.Operation
}
