package container

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"symbolize/ingest/files"
	"symbolize/ingest/format/perfdata"
)

// DataFile is the file of a directory that has header, attrs and features, and records that
// perf made itself. The kernel's are in data.0, data.1 …, one for each reading thread, with
// --threads, else in the same file.
const DataFile = "data"

// IsDir reports whether a path is a directory as perf record --threads and --kcore make them.
func IsDir(path string) bool {
	if fi, err := os.Stat(path); err != nil || !fi.IsDir() {
		return false
	}
	f, err := files.Open(filepath.Join(path, DataFile))
	if err != nil {
		return false
	}
	defer f.Close()
	var head [8]byte
	n, _ := f.ReadAt(head[:], 0)
	return perfdata.IsPerfData(head[:n])
}

// Kallsyms returns the path of the copy of /proc/kallsyms in a directory of perf record
// --kcore, "" if there is none.
func Kallsyms(dir string) string { return inKcore(dir, "kallsyms") }

// Kcore returns the path of the copy of the kernel's code that is there, "" if there is none.
func Kcore(dir string) string { return inKcore(dir, "kcore") }

func inKcore(dir, name string) string {
	path := filepath.Join(dir, "kcore_dir", name)
	if fi, err := os.Stat(path); err != nil || !fi.Mode().IsRegular() {
		return ""
	}
	return path
}

// OpenDir opens a directory of perf.data files. Files that cannot be opened are warnings, but
// for the one that has the header. most is as of Open, and reads notes errors of reading.
func OpenDir(ctx context.Context, path string, most int64, reads *files.Reads) (*Perf, error) {
	p := &Perf{most: most, reads: reads}
	if err := p.openDir(ctx, path); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Perf) openDir(ctx context.Context, path string) error {
	first, err := p.openFile(filepath.Join(path, DataFile))
	if err != nil {
		return err
	}
	f, err := perfdata.Open(first.name, first.r, first.data.Size)
	if err != nil {
		return err
	}
	first.data = f.Data
	names, err := recordFiles(path)
	if err != nil {
		return err
	}
	segments := []segment{first}
	for _, name := range names {
		s, err := p.openFile(filepath.Join(path, name))
		if err != nil {
			f.Warn(err)
			continue
		}
		segments = append(segments, s)
	}
	return p.place(ctx, f, segments)
}

// openFile opens a file as a segment of all its bytes.
func (p *Perf) openFile(path string) (segment, error) {
	f, err := files.Open(path)
	if err != nil {
		return segment{}, err
	}
	p.closers = append(p.closers, f)
	fi, err := f.Stat()
	if err != nil {
		return segment{}, err
	}
	p.Size += fi.Size()
	return segment{name: path, r: p.reads.Of(f), data: perfdata.Section{Size: fi.Size()}}, nil
}

// recordFiles returns the names of data.0, data.1 … in the order of their numbers.
func recordFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	byNumber := make(map[int]string)
	var numbers []int
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), DataFile+".")
		n, err := strconv.Atoi(digits)
		if ok && err == nil && strconv.Itoa(n) == digits {
			byNumber[n] = e.Name()
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	names := make([]string, len(numbers))
	for i, n := range numbers {
		names[i] = byNumber[n]
	}
	return names, nil
}
