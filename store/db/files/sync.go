package files

import (
	"errors"
	"io"
	"os"

	"symbolize/store"
)

// ReadLimited reads a small file.
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

// WriteSynced writes a small file that is whole on disk when it returns.
func WriteSynced(path string, b []byte) error {
	f, err := Open(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// SyncFile makes sure that a file is on disk as it is.
func SyncFile(path string) error {
	f, err := Open(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// SyncDir makes sure that the names in a directory are on disk as they are.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
