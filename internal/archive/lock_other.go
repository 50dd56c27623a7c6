//go:build !unix

package archive

import (
	"os"
	"path/filepath"
)

// lockFolder makes the file that locks a folder elsewhere; here nothing keeps other processes out.
func lockFolder(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
}
