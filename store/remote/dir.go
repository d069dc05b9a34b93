package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"symbolize/ingest/files"
	"symbolize/store"
)

// Dir is a Bucket in a directory: objects are files.
type Dir struct{ root string }

// OpenDir returns the Bucket in a directory, which need not exist.
func OpenDir(root string) *Dir { return &Dir{root: filepath.Clean(root)} }

func (d *Dir) path(key string) string { return filepath.Join(d.root, filepath.FromSlash(key)) }

// URL implements Bucket.
func (d *Dir) URL(key string) string { return d.path(key) }

// Get implements Bucket.
func (d *Dir) Get(_ context.Context, key string, limit int64) ([]byte, error) {
	f, err := files.Open(d.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", d.URL(key), ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, limit, d.URL(key))
}

// readAll reads an object of at most limit bytes.
func readAll(r io.Reader, limit int64, url string) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: after %d bytes: %w", url, len(b), err)
	case int64(len(b)) > limit:
		return nil, fmt.Errorf("%s: %w: over %d bytes", url, store.ErrTooLarge, limit)
	}
	return b, nil
}

// Stat implements Bucket.
func (d *Dir) Stat(_ context.Context, key string) (Entry, error) {
	info, err := os.Lstat(d.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return Entry{}, fmt.Errorf("%s: %w", d.URL(key), ErrNotFound)
	}
	if err != nil {
		return Entry{}, err
	}
	return Entry{key, info.Size(), info.ModTime()}, nil
}

// Put implements Bucket. The file is on disk before it has its name.
func (d *Dir) Put(ctx context.Context, key string, data []byte) (created bool, err error) {
	if _, err := d.Stat(ctx, key); !errors.Is(err, ErrNotFound) {
		return false, err
	}
	return true, d.write(key, data)
}

// Replace implements Bucket.
func (d *Dir) Replace(_ context.Context, key string, data []byte) error { return d.write(key, data) }

// Remove implements Bucket. Directories that become empty go with the object.
func (d *Dir) Remove(_ context.Context, key string) error {
	err := os.Remove(d.path(key))
	for dir := path.Dir(key); err == nil && dir != "."; dir = path.Dir(dir) {
		if os.Remove(d.path(dir)) != nil {
			break
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// write writes an object, in place of one that is there. Meanwhile another process may remove its
// directory.
func (d *Dir) write(key string, data []byte) error {
	err := d.writeOnce(key, data)
	for tries := 0; tries < 3 && errors.Is(err, fs.ErrNotExist); tries++ {
		err = d.writeOnce(key, data)
	}
	return err
}

func (d *Dir) writeOnce(key string, data []byte) (err error) {
	path := d.path(key)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := files.Create(path, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Discard()) }()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Commit(path)
}

// List implements Bucket.
func (d *Dir) List(ctx context.Context, prefix string) ([]Entry, error) {
	dir, name := "", prefix
	if at := strings.LastIndexByte(prefix, '/'); at >= 0 {
		dir, name = prefix[:at], prefix[at+1:]
	}
	entries, err := os.ReadDir(d.path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Entry
	for _, e := range entries {
		key := strings.TrimPrefix(dir+"/"+e.Name(), "/")
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !strings.HasPrefix(e.Name(), name) || strings.HasPrefix(e.Name(), "."):
		case e.IsDir():
			below, err := d.List(ctx, key+"/")
			if err != nil {
				return nil, err
			}
			list = append(list, below...)
		default:
			found, err := d.Stat(ctx, key)
			if err == nil {
				list = append(list, found)
			} else if !errors.Is(err, ErrNotFound) { // which another process has removed
				return nil, err
			}
		}
	}
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	return list, nil
}
