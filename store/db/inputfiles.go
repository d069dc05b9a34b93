package db

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"symbolize/buildid"
	"symbolize/ingest/files"
	"symbolize/store"
	"symbolize/store/symtab"
)

// inputFiles reads and writes the inputs of a store.
type inputFiles struct {
	path string // of the store

	mu     sync.Mutex
	closed bool
	root   *os.Root                // inputs/; nil before it was opened
	known  map[digest]*store.Input // directories that were read lately

	// puts serializes the writing of one input: objects that are merged at a time may have inputs
	// in common, and what is being written is not to be confused with what a killed run left.
	// Indexed by the first byte of the digest.
	puts [16]sync.Mutex
}

// maxKnown bounds the directories of inputs that are kept.
const maxKnown = 32

// dir opens inputs/.
func (c *inputFiles) dir() (*os.Root, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.root != nil {
		return c.root, nil
	}
	if c.closed {
		return nil, store.ErrClosed
	}
	if err := files.CheckDirs(c.path, inputsName); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(filepath.Join(c.path, inputsName))
	c.root = root
	return root, err
}

func (c *inputFiles) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	root := c.root
	c.root, c.known, c.closed = nil, nil, true
	if root == nil {
		return nil
	}
	return root.Close()
}

// open opens an input: in inputs/, or in trash/. One that is in neither wraps store.ErrDamaged.
func (c *inputFiles) open(id digest) (*os.File, error) {
	root, err := c.dir()
	var f *os.File
	if err == nil {
		f, err = files.OpenIn(root, id.String())
	}
	if errors.Is(err, fs.ErrNotExist) {
		if at := findTrash(c.path, id.String()); at != "" {
			f, err = files.OpenPlain(at, os.O_RDONLY, 0)
		}
	}
	if err != nil {
		return nil, store.ReadFailure("input "+id.String(), err)
	}
	return f, nil
}

// input returns the directory of an input, with the file if the input is large, for the caller to
// close.
func (c *inputFiles) input(id digest) (*store.Input, *os.File, error) {
	c.mu.Lock()
	in := c.known[id]
	c.mu.Unlock()
	if in != nil && in.Whole() {
		return in, nil, nil
	}
	f, err := c.open(id)
	if err != nil {
		return nil, nil, err
	}
	if in == nil {
		var info fs.FileInfo
		if info, err = f.Stat(); err == nil {
			in, err = store.ReadInput(id, f, info.Size())
		}
		if err != nil {
			return nil, nil, errors.Join(err, f.Close())
		}
		c.mu.Lock()
		if c.known == nil || len(c.known) >= maxKnown {
			c.known = make(map[digest]*store.Input)
		}
		c.known[id] = in
		c.mu.Unlock()
	}
	if in.Whole() {
		return in, nil, f.Close()
	}
	return in, f, nil
}

// forget drops what is known of an input that is written anew.
func (c *inputFiles) forget(id digest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, id)
}

// has returns an error that wraps store.ErrDamaged unless an input has a source.
func (c *inputFiles) has(id digest, s *store.SourceInfo) error {
	in, f, err := c.input(id)
	if err != nil {
		return err
	}
	if f != nil {
		defer f.Close()
	}
	_, err = in.Source(s.Kind, s.Digest)
	return err
}

// check reads a whole input and compares it with its name. It returns its size. Errors other than
// this machine's wrap store.ErrDamaged.
func (c *inputFiles) check(id digest) (int64, error) {
	f, err := c.open(id)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := copyFrom(h, f)
	if err != nil {
		return n, store.ReadFailure("input "+id.String(), err)
	}
	if got := digest(h.Sum(nil)); got != id {
		return n, store.Damagef("input %s: it has the content of %s", id, got)
	}
	return n, nil
}

// copyBuffers are for copyFrom: io.Copy makes one for each of many small files.
var copyBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// copyFrom copies a file.
func copyFrom(w io.Writer, f *os.File) (int64, error) {
	buf := copyBuffers.Get().(*[32 << 10]byte)
	defer copyBuffers.Put(buf)
	return io.CopyBuffer(w, struct{ io.Reader }{f}, buf[:]) // without the file's WriteTo
}

// put writes an input unless it is there whole.
func (c *inputFiles) put(in *store.NewInput) error {
	root, err := c.dir()
	if err != nil {
		return err
	}
	mu := &c.puts[int(in.ID[0])%len(c.puts)]
	mu.Lock()
	defer mu.Unlock()
	name := in.ID.String()
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if !errors.Is(err, fs.ErrExist) {
		if err == nil {
			if err = writeInput(f, in); err != nil {
				err = errors.Join(err, root.Remove(name))
			}
		}
		return spaceError(err)
	}
	// Left by a killed run, or damaged since.
	if old, err := files.OpenIn(root, name); err == nil {
		same := in.Equal(bufio.NewReader(old))
		if err := old.Close(); err != nil || same {
			return err
		}
	}
	defer c.forget(in.ID)
	tmp := tmpPrefix + name // the only writer of the store is this process
	if err := root.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if f, err = root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err != nil {
		return spaceError(err)
	}
	if err = writeInput(f, in); err == nil {
		err = root.Rename(tmp, name)
	}
	return spaceError(err)
}

// writeInput writes an input to a file and closes it.
func writeInput(f *os.File, in *store.NewInput) error {
	w := bufio.NewWriterSize(f, int(min(in.Size, 1<<20)))
	for _, b := range in.Parts {
		if _, err := w.Write(b); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(w.Flush(), f.Close())
}

// spaceError makes an error of a full disk wrap store.ErrNoSpace.
func spaceError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", store.ErrNoSpace, err)
	}
	return err
}

// syncEach is how many inputs are synced one by one. More are synced by one call for the whole file
// system, where there is one.
const syncEach = 8

// sync syncs inputs and their directory to disk.
func (c *inputFiles) sync(ids map[digest]bool) error {
	if len(ids) == 0 {
		return nil
	}
	dir := filepath.Join(c.path, inputsName)
	if len(ids) > syncEach {
		if done, err := files.SyncSystem(dir); done || err != nil {
			return spaceError(err)
		}
	}
	for id := range ids {
		if err := files.SyncFile(filepath.Join(dir, id.String())); err != nil {
			return spaceError(err)
		}
	}
	return files.SyncDir(dir)
}

// eachName calls fn for the names of all files of a directory in the store, in no order; none if it is
// missing.
func eachName(dir string, fn func(name string) error) error {
	f, err := files.OpenDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(1024)
		for _, name := range names {
			if err := fn(name); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// blocks reads the blocks of one table.
type blocks struct {
	c      *inputFiles
	in     *store.Input
	source *store.InputSource
	buf    []byte
}

// Block implements symtab.Blocks.
func (b *blocks) Block(kind symtab.BlockKind, i int) ([]byte, error) {
	p, ok := b.source.Block(kind, i)
	if !ok {
		return nil, store.Damagef("%s %d of a table is not in input %s", kind, i, b.in.ID)
	}
	if b.in.Whole() {
		return b.in.Read(nil, p, nil)
	}
	f, err := b.c.open(b.in.ID)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return b.in.Read(f, p, &b.buf)
}

// openTable opens the table of a source.
func openTable[T any](c *inputFiles, id buildid.ID, info *store.SourceInfo,
	open func(header []byte, blocks symtab.Blocks) (*T, error)) (t *T, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s of %s: %w", info.Kind, id, err)
		}
	}()
	if info.Input == (digest{}) {
		return nil, store.ErrNotFound
	}
	in, f, err := c.input(info.Input)
	if err != nil {
		return nil, err
	}
	if f != nil {
		defer f.Close()
	}
	source, err := in.Source(info.Kind, info.Digest)
	if err != nil {
		return nil, err
	}
	var buf []byte
	header, err := in.Read(f, source.Header(), &buf)
	if err != nil {
		return nil, err
	}
	return open(header, &blocks{c: c, in: in, source: source})
}

// raw returns the captured input or blob that is kept in an input.
func (c *inputFiles) raw(id digest, kind store.SourceKind, sum [32]byte) ([]byte, error) {
	in, f, err := c.input(id)
	if err != nil {
		return nil, err
	}
	if f != nil {
		defer f.Close()
	}
	source, err := in.Source(kind, sum)
	if err != nil {
		return nil, err
	}
	return in.UnpackRaw(f, source)
}
