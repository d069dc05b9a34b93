//go:build linux

package db

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// copyStore copies a store with its holes: Badger's logs are files of 128 MiB with little
// in them.
func copyStore(tb testing.TB, from, to string) {
	tb.Helper()
	links := make(map[uint64]string)
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return skipMissing(err)
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if e.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return skipMissing(err)
		}
		if first, ok := links[st.Ino]; ok {
			return os.Link(first, target)
		}
		links[st.Ino] = target
		return skipMissing(copySparse(path, target))
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func copySparse(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	for at := int64(0); ; {
		data, err := unix.Seek(int(in.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) || data >= info.Size() {
			return out.Truncate(info.Size())
		}
		if err != nil {
			return err
		}
		if at, err = unix.Seek(int(in.Fd()), data, unix.SEEK_HOLE); err != nil {
			return err
		}
		n := min(at, info.Size()) - data
		_, err = io.Copy(io.NewOffsetWriter(out, data), io.NewSectionReader(in, data, n))
		if err != nil {
			return err
		}
	}
}

// interruptedStore returns a store of 7 published objects with 7 more in a db/ that its
