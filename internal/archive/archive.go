package archive

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/klauspost/compress/zstd"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
)

// Options are what Open needs.
type Options struct {
	Dir    string // made where it is not there
	Rotate int64  // bytes after which a file is closed and another one begun; 0: 256 MiB

	create func(path string) (file, error) // for tests; nil: on disk
}

const defaultRotate = 256 << 20

// file is what an archive needs of an open file.
type file interface {
	Write(p []byte) (int, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

// Archive is an open folder.
type Archive struct {
	options Options
	lock    *os.File
	encoder *zstd.Encoder

	writing sync.Mutex // one Append at a time; held over I/O, since documents have to be on disk before anything goes on
	open    map[backend.Namespace]*openFile
	total   Total
	frame   []byte // kept for its room
	plain   []byte
}

// Total is what an archive was given since it was opened.
type Total struct {
	Documents int64
	Bytes     int64 // of BSON
	Stored    int64 // bytes in files
}

// openFile is a file that documents are added to.
type openFile struct {
	entry Entry
	file  file
	sum   checksum
	torn  bool // bytes behind entry.Stored may be there
}

// Open opens a folder, and closes the files that a process which ended without notice has left open in it. An error has a method Permanent where trying again does
// not mend it.
func Open(o Options) (*Archive, error) {
	if o.Rotate <= 0 {
		o.Rotate = defaultRotate
	}
	if o.Dir == "" {
		return nil, errors.New("an archive needs a folder")
	}
	o.Dir = filepath.Clean(o.Dir) // names of files are told apart by what follows it
	if o.create == nil {
		o.create = func(path string) (file, error) {
			return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
		}
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the archive's folder: %w", lasting(err))
	}
	lock, err := lockFolder(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("lock the archive's folder %s: %w", o.Dir, lasting(err))
	}
	a := &Archive{options: o, lock: lock, open: make(map[backend.Namespace]*openFile)}
	// The fastest level that still finds what repeats: documents of a collection are much alike.
	if a.encoder, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1)); err == nil {
		err = a.finishOthers()
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return a, nil
}

// frameBytes is the BSON that a frame holds at most, unless one document alone has more.
const frameBytes = 16 << 20

// unusable is an error that trying again does not mend, as one who asks for its Permanent learns. All others, such as that of a full disk or of a folder that another
// process has open, may be over next time.
type unusable struct{ error }

func (u unusable) Unwrap() error { return u.error }
func (unusable) Permanent() bool { return true }

// lasting marks what is wrong with a folder until somebody mends it: it is a file, or closed to this process.
func lasting(err error) error {
	if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.ENOTDIR) {
		return unusable{err}
	}
	return err
}

// Append adds documents of a collection. With an error some of them may be in the archive.
func (a *Archive) Append(ns backend.Namespace, documents []bson.Document) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	for len(documents) > 0 {
		n, size := 1, len(documents[0])
		for n < len(documents) && size+len(documents[n]) <= frameBytes {
			size += len(documents[n])
			n++
		}
		if err := a.appendFrame(ns, documents[:n]); err != nil {
			return err
		}
		documents = documents[n:]
	}
	return nil
}

func (a *Archive) appendFrame(ns backend.Namespace, documents []bson.Document) error {
	f, err := a.fileOf(ns)
	if err != nil {
		return err
	}
	a.plain = a.plain[:0]
	for _, d := range documents {
		a.plain = append(a.plain, d...)
	}
	a.frame = a.encoder.EncodeAll(a.plain, a.frame[:0])
	if err := f.append(a.frame, len(documents), len(a.plain)); err != nil {
		return fmt.Errorf("write %s: %w", f.entry.File, err)
	}
	a.total.Documents += int64(len(documents))
	a.total.Bytes += int64(len(a.plain))
	a.total.Stored += int64(len(a.frame))
	if f.entry.Stored >= a.options.Rotate {
		return a.seal(ns)
	}
	return nil
}

// append adds a frame and syncs it. After an error the frame is not in the file, or will not be when the next one is.
func (f *openFile) append(frame []byte, documents, plain int) error {
	if f.torn {
		if err := f.file.Truncate(f.entry.Stored); err != nil {
			return err
		}
	}
	f.torn = true
	if _, err := f.file.Write(frame); err != nil {
		return errors.Join(err, f.file.Truncate(f.entry.Stored))
	}
	if err := f.file.Sync(); err != nil {
		return errors.Join(err, f.file.Truncate(f.entry.Stored))
	}
	f.torn = false
	f.sum.Write(frame)
	f.entry.Documents += int64(documents)
	f.entry.Bytes += int64(plain)
	f.entry.Stored += int64(len(frame))
	return nil
}

// fileOf returns the file that a collection's documents are added to.
func (a *Archive) fileOf(ns backend.Namespace) (*openFile, error) {
	if f := a.open[ns]; f != nil {
		return f, nil
	}
	folder := filepath.Join(a.options.Dir, fileName(ns.Database))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the archive's folder: %w", err)
	}
	last, err := lastNumber(folder, fileName(ns.Collection))
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s/%s.%06d%s", fileName(ns.Database), fileName(ns.Collection), last+1, suffix)
	opened, err := a.options.create(filepath.Join(a.options.Dir, name))
	if err == nil {
		if err = errors.Join(syncFolder(folder), syncFolder(a.options.Dir)); err != nil {
			err = errors.Join(err, opened.Close())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("make a file of the archive: %w", err)
	}
	f := &openFile{entry: Entry{File: name, Namespace: ns.String()}, file: opened, sum: newChecksum()}
	a.open[ns] = f
	return f, nil
}

// suffix is that of the archive's files.
const suffix = ".bson.zst"

// fileName is a name of a database or collection as a file's: what a file system could take for something else is escaped as in URLs, as mongodump does.
func fileName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if c == '/' || c == '\\' || c == '%' || c == ':' || c < ' ' || c == '.' && i == 0 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// lastNumber is the highest number of a collection's files, 0 without any.
func lastNumber(folder, collection string) (int, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return 0, fmt.Errorf("read the archive's folder: %w", err)
	}
	last := 0
	for _, e := range entries {
		var n int
		rest, ok := strings.CutPrefix(e.Name(), collection+".")
		digits, also := strings.CutSuffix(rest, suffix)
		if ok && also && len(digits) >= 6 {
			if _, err := fmt.Sscanf(digits, "%d", &n); err == nil {
				last = max(last, n)
			}
		}
	}
	return last, nil
}

// seal closes a collection's file and puts it into the lists. A file that holds nothing is removed.
func (a *Archive) seal(ns backend.Namespace) error {
	f := a.open[ns]
	delete(a.open, ns)
	path := filepath.Join(a.options.Dir, f.entry.File)
	if f.torn {
		if err := f.file.Truncate(f.entry.Stored); err != nil {
			return fmt.Errorf("close %s: %w", f.entry.File, errors.Join(err, f.file.Close()))
		}
	}
	if err := f.file.Close(); err != nil {
		return fmt.Errorf("close %s: %w", f.entry.File, err)
	}
	if f.entry.Documents == 0 {
		return os.Remove(path)
	}
	f.entry.SHA256 = f.sum.text()
	return a.list(f.entry)
}

// Total tells what was archived since the folder was opened.
func (a *Archive) Total() Total {
	a.writing.Lock()
	defer a.writing.Unlock()
	return a.total
}

// Close closes all files and puts them into the lists.
func (a *Archive) Close() error {
	a.writing.Lock()
	defer a.writing.Unlock()
	var names []backend.Namespace
	for ns := range a.open {
		names = append(names, ns)
	}
	slices.SortFunc(names, func(x, y backend.Namespace) int { return strings.Compare(x.String(), y.String()) })
	var errs []error
	for _, ns := range names {
		errs = append(errs, a.seal(ns))
	}
	return errors.Join(append(errs, a.encoder.Close(), a.lock.Close())...)
}

// syncFolder makes sure that the names of a folder's files are on disk.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
