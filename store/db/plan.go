package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"symbolize/buildid"
	"symbolize/store"
)

// target receives the data to keep: a batch of the fresh database, or a measure.
type target interface {
	put(key, payload []byte) error
	commit() error
}

// PlanGC returns the effects of a GC of the open generation. After is an estimate: the bytes of
// all values that would be kept, without the database's own.
func (r *Reader) PlanGC(ctx context.Context, opts GCOptions) (*GCResult, error) {
	res, err := newResult(r.path, &opts)
	if err != nil {
		return nil, err
	}
	to := &measure{}
	c := &collector{d: r.database, to: to, opts: opts, res: res}
	if err := c.run(ctx); err != nil {
		return nil, err
	}
	for _, name := range []string{gensName, liveName, leftName, asideName} {
		n, err := DiskUse(filepath.Join(r.path, name))
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		to.bytes -= n
	}
	res.After = min(res.Before, res.Before+to.bytes+emptyDatabase)
	return res, nil
}

// emptyDatabase is about the size on disk of the files of a generation besides its values.
const emptyDatabase = 24 << 10

// measure is a target that only adds up the sizes of a database.
type measure struct{ bytes int64 }

func (m *measure) put(key, payload []byte) error {
	m.bytes += int64(len(key)+len(payload)) + entryOverhead
	return nil
}

func (m *measure) commit() error { return nil }

// newResult returns the result of a GC that has yet to be done, and completes its options.
func newResult(path string, opts *GCOptions) (res *GCResult, err error) {
	if opts.Exists == nil {
		opts.Exists = func(path string) bool {
			_, err := os.Lstat(path)
			return !errors.Is(err, fs.ErrNotExist)
		}
	}
	res = &GCResult{kept: make(map[string]bool)}
	if res.Before, err = DiskUse(path); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return res, nil
}

// drops reports whether the options have an object dropped.
func (c *collector) drops(m *store.Manifest) bool {
	if c.opts.Remove[m.ID] || c.opts.Unreferenced && !c.wanted[m.ID.Key()] && replaceable(m) {
		return true
	}
	if c.opts.Since.IsZero() {
		return false
	}
	day, ok := c.uses[store.ObjectName(m.ID)]
	if !ok {
		c.res.Undated++
		c.res.undated = append(c.res.undated, m.ID)
	}
	return ok && day.Before(c.opts.Since)
}

// replaceable reports whether indexing its files again would bring the object back.
func replaceable(m *store.Manifest) bool {
	return m.ID.Space() != buildid.JIT && len(m.RefSyms)+len(m.VDSO) == 0 &&
		!slices.ContainsFunc(m.Sources, func(s store.SourceInfo) bool { return s.RawSize > 0 })
}
