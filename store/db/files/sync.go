package files

import (
	"errors"
	"io"
	"os"

	"symbolize/store"
)

// ReadLimited reads a file of at most limit bytes.
func ReadLimited(path string, limit int64) ([]byte, error) {
	f, err := Open(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, store.Damagef("%s: over %d bytes", path, limit)
	}
	return b, nil
}

// WriteSynced writes a small file and syncs it to disk.
func WriteSynced(path string, b []byte) error {
	f, err := Open(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// SyncFile syncs the content of a file to disk.
func SyncFile(path string) error {
	f, err := Open(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// SyncDir syncs the entries of a directory to disk.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
