package indexer

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"symbolize/ingest/files"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/input/container"
	"symbolize/ingest/texts"
	"symbolize/store"
)

// archives are tar files among the paths, packed or not, as `perf archive` makes them of its
// ~/.debug, and packages of Debian. Their files are unpacked into a temporary directory while they
// are indexed; in the store they have the archive's path.
type archives struct {
	dir   string // with a directory for each archive; "" while there are none
	paths []string
}

// Limits of archives. The space in the temporary directory limits their size.
const (
	maxArchiveFiles = 1 << 20
	tarMagicAt      = 257 // "ustar" in a tar's first header
	tarHead         = 512
)

// unpack replaces each archive among the paths by a directory of its files.
func (a *archives) unpack(ctx context.Context, paths []string) (replaced []string,
	problems []Problem) {
	for _, p := range paths {
		r, err := openArchive(p)
		if other, ok := errors.AsType[*packageError](err); ok {
			problems = append(problems, Problem{Path: p, Err: err, Named: true,
				Hint: strings.Replace(other.hint, "FILE", texts.ShellWord(p), 1)})
			continue
		}
		if r == nil {
			replaced = append(replaced, p) // its reader reports the error
			continue
		}
		dir, err := a.add(p)
		if err == nil {
			err = unpackTar(ctx, dir, r, true)
		}
		if err := errors.Join(err, r.Close()); err != nil {
			problem := Problem{Path: p, Err: err, Named: true}
			if errors.Is(err, files.ErrFull) {
				problem.Run, problem.Hint = true, "set TMPDIR to a directory with more space"
			}
			problems = append(problems, problem)
		}
		if dir != "" {
			replaced = append(replaced, dir)
		}
	}
	return replaced, problems
}

// add makes the directory for the files of an archive.
func (a *archives) add(path string) (string, error) {
	if a.dir == "" {
		dir, err := os.MkdirTemp("", "symbolize-archive-*")
		if err != nil {
			return "", err
		}
		if a.dir, err = files.Real(dir); err != nil {
			return "", errors.Join(err, os.Remove(dir))
		}
	}
	dir := filepath.Join(a.dir, strconv.Itoa(len(a.paths)))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	a.paths = append(a.paths, path)
	return dir, nil
}

// close removes the unpacked files.
func (a *archives) close() error {
	if a.dir == "" {
		return nil
	}
	return os.RemoveAll(a.dir)
}

// origin returns the path by which a file is known: ARCHIVE/MEMBER for one of an archive.
func (a *archives) origin(path string) (origin string, unpacked bool) {
	rest, ok := strings.CutPrefix(path, a.dir+"/")
	if a.dir == "" || !ok {
		return path, false
	}
	number, member, _ := strings.Cut(rest, "/")
	i, err := strconv.Atoi(number)
	if err != nil || i < 0 || i >= len(a.paths) {
		return path, true
	}
	return filepath.Join(a.paths[i], member), true
}

// archiveReader reads the unpacked bytes of an archive.
type archiveReader struct {
	io.Reader
	closers []io.Closer
}

func (r *archiveReader) Close() error {
	var errs []error
	for i := len(r.closers) - 1; i >= 0; i-- {
		errs = append(errs, r.closers[i].Close())
	}
	return errors.Join(errs...)
}

// openArchive opens a tar file that is no bundle, or the one in a package of Debian; the reader is nil
// for other files. Packages that are not read have a *packageError.
func openArchive(path string) (*archiveReader, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	r := &archiveReader{closers: []io.Closer{f}}
	in := bufio.NewReader(f)
	data, err := packageData(in)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	in = bufio.NewReader(data)
	if head, _ := in.Peek(files.MagicBytes); files.PackingOf(head) != "" {
		unpacked, err := container.Unpacking(files.PackingOf(head), in)
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		r.closers = append(r.closers, unpacked)
		in = bufio.NewReader(unpacked)
	}
	head, _ := in.Peek(tarHead)
	if len(head) < tarHead || !bytes.HasPrefix(head[tarMagicAt:], []byte("ustar")) ||
		bundle.IsBundle(head) {
		return nil, r.Close()
	}
	r.Reader = in
	return r, nil
}

// unpackTar writes the regular files of a tar below a directory, with their directories.
// Archives among them, which `perf archive --all` makes, are unpacked there, too.
func unpackTar(ctx context.Context, dir string, r io.Reader, nested bool) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	t := tar.NewReader(r)
	for range maxArchiveFiles {
		h, err := t.Next()
		if err := cmp.Or(ctx.Err(), err); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("archive: %w", err)
		}
		name := filepath.Clean(strings.TrimLeft(h.Name, "/"))
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(name) {
			continue
		}
		if err := unpackMember(ctx, root, name, t); err != nil {
			return fmt.Errorf("archive: %s: %w", h.Name, err)
		}
		if nested && strings.Contains(name, ".tar") {
			if err := unpackNested(ctx, dir, name); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("archive: more than %d files", maxArchiveFiles)
}

// unpackMember writes one file.
func unpackMember(ctx context.Context, root *os.Root, name string, r io.Reader) (err error) {
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil // the first of a name counts
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return files.Fill(ctx, f, r)
}

func unpackNested(ctx context.Context, dir, name string) error {
	r, err := openArchive(filepath.Join(dir, name))
	if r == nil {
		return err
	}
	defer r.Close()
	return unpackTar(ctx, dir, r, false)
}

// sink returns open for the files of archives: they have no rows of directories, because no later
// run finds them there, and are identified by the path of their archive.
func (a *archives) sink(open func() (store.Sink, error)) func() (store.Sink, error) {
	return func() (store.Sink, error) {
		s, err := open()
		if err != nil {
			return nil, err
		}
		return &archiveSink{s, a}, nil
	}
}

type archiveSink struct {
	store.Sink
	archives *archives
}

func (s *archiveSink) Merge(ctx context.Context, c *store.Contribution) error {
	for i := range c.Sources {
		c.Sources[i].Info.Path, _ = s.archives.origin(c.Sources[i].Info.Path)
	}
	return s.Sink.Merge(ctx, c)
}

func (s *archiveSink) PutDir(dir string, rows store.DirRows) error {
	if _, unpacked := s.archives.origin(dir + "/"); unpacked {
		return nil
	}
	return s.Sink.PutDir(dir, rows)
}
