package badinput

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"oxbow"
)

// refused opens a gateway that must not open, and returns why.
func refused(t *testing.T, file string) error {
	t.Helper()
	g, err := oxbow.Open(t.Context(), oxbow.Options{File: file, Listen: "127.0.0.1:0"})
	if err == nil {
		shut(g)
		t.Fatal("it opened")
	}
	return err
}

// A data folder that another gateway uses is refused, and the other one is not disturbed.
func TestFolderInUse(t *testing.T) {
	dir := t.TempDir()
	file := configure(t, dir, collections)
	c := connect(t, open(t, file)).Database("d").Collection("bydate")
	stored(t, c, bson.M{"_id": 1, "at": at(1)})
	if err := refused(t, file); !strings.Contains(err.Error(), filepath.Join(dir, "data")) || !strings.Contains(err.Error(), "use") {
		t.Errorf("the error is %v", err)
	}
	stored(t, c, bson.M{"_id": 2, "at": at(2)})
	if got := ids(t, c); !slices.Equal(got, []int32{1, 2}) {
		t.Errorf("the _ids are %v", got)
	}
}

// A data folder that cannot be made, since a file is in the way, is refused with its name; the file stays as it was.
func TestFileInTheWay(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.WriteFile(data, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := refused(t, configure(t, dir, collections)); !strings.Contains(err.Error(), data) {
		t.Errorf("the error is %v", err)
	}
	if b, err := os.ReadFile(data); string(b) != "mine" || err != nil {
		t.Errorf("the file holds %q, %v", b, err)
	}
}

// A data folder without write permission is refused with its name, and opens with all its documents once the permission is there. Root may
// write whatever the permissions say, so for root the folder is mounted read-only.
func TestFolderWithoutWritePermission(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	file := configure(t, dir, collections)
	g, err := oxbow.Open(t.Context(), oxbow.Options{File: file, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	client := connect(t, g)
	stored(t, client.Database("d").Collection("bydate"), bson.M{"_id": 1, "at": at(1)})
	disconnect(client)
	if err := shut(g); err != nil {
		t.Fatal(err)
	}
	permit := forbid(t, data)
	if err := refused(t, file); !strings.Contains(err.Error(), data) {
		t.Errorf("the error is %v", err)
	}
	permit()
	if got := ids(t, connect(t, open(t, file)).Database("d").Collection("bydate")); !slices.Equal(got, []int32{1}) {
		t.Errorf("the _ids are %v", got)
	}
}

// forbid takes the write permission of a folder away until what it returns is called.
func forbid(t *testing.T, dir string) (permit func()) {
	t.Helper()
	if os.Getuid() == 0 {
		mount(t, "--bind", dir, dir)
		mount(t, "-o", "remount,bind,ro", dir)
		return func() { unmount(t, dir) }
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	permit = func() {
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(permit)
	return permit
}

// mount runs mount; the test is skipped where it may not.
func mount(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
		t.Skipf("mount is not allowed here: %v: %s", err, out)
	}
	dir := args[len(args)-1]
	t.Cleanup(func() { exec.Command("umount", "-l", dir).Run() })
}

func unmount(t *testing.T, dir string) {
	t.Helper()
	if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
		t.Fatalf("umount: %v: %s", err, out)
	}
}

// On a full disk writes fail with OutOfDiskSpace (14031), reads go on, and every acknowledged document is there, then and after opening again with
// room. The disk is a small file system in memory, which takes root; internal/engine tests the same without root on a file system that says it is full.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system takes root; internal/engine tests full disks without")
	}
	disk, dir := t.TempDir(), t.TempDir()
	mount(t, "-t", "tmpfs", "-o", "size=96m", "tmpfs", disk)
	file := filepath.Join(dir, "oxbow.yaml")
	text := fmt.Sprintf("backends: {local: {embedded: %s, cache: 8MiB, memtable: 4MiB}}\n%s", filepath.Join(disk, "data"), collections)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := oxbow.Open(t.Context(), oxbow.Options{File: file, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	synced := options.Collection().SetWriteConcern(&writeconcern.WriteConcern{W: 1, Journal: new(true)})
	client := connect(t, g)
	c := client.Database("d").Collection("bydate", synced)
	acknowledged := fill(t, c)
	if n, err := c.CountDocuments(t.Context(), bson.D{}); err != nil || n < int64(acknowledged) {
		t.Errorf("%d of %d acknowledged documents are there, %v", n, acknowledged, err)
	}
	disconnect(client)
	if err := shut(g); err != nil {
		t.Logf("close on a full disk: %v", err)
	}
	mount(t, "-o", "remount,size=256m", disk)
	c = connect(t, open(t, file)).Database("d").Collection("bydate")
	for id := range acknowledged {
		if err := c.FindOne(t.Context(), bson.M{"_id": id}).Err(); err != nil {
			t.Fatalf("document %d of %d acknowledged: %v", id, acknowledged, err)
		}
	}
	stored(t, c, bson.M{"_id": -1, "at": at(1)})
}

// fill inserts until the disk is full and returns how many documents were acknowledged.
func fill(t *testing.T, c *mongo.Collection) int {
	t.Helper()
	noise := make([]byte, 256<<10)
	for id := range 2000 {
		for i := range noise {
			noise[i] = byte(i * (id + i>>8 + 7) >> 3) // does not compress well
		}
		_, err := c.InsertOne(t.Context(), bson.M{"_id": id, "at": at(1), "noise": noise})
		if err == nil {
			continue
		}
		const outOfDiskSpace = 14031
		var failed mongo.ServerError
		if !errors.As(err, &failed) || !failed.HasErrorCode(outOfDiskSpace) {
			t.Errorf("the error on a full disk is %v", err)
		}
		return id
	}
	t.Fatal("the disk never got full")
	return 0
}
