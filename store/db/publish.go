package db

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"symbolize/ingest/files"
	"symbolize/store"
)

// Publish makes all that was written so far a generation, which readers that open the store from
// now on see. It does nothing if nothing was written.
func (w *Writer) Publish() error {
	w.writing.Lock()
	defer w.writing.Unlock()
	if w.db == nil {
		return fmt.Errorf("%s: %w", w.path, store.ErrClosed)
	}
	if err := w.flushRows(); err != nil {
		return err
	}
	return w.publish(true)
}

// publishPeriodically publishes if it is time to, at a bounded share of the run.
func (w *Writer) publishPeriodically() error {
	every := w.opts.PublishEvery
	if every == 0 {
		every = DefaultPublishEvery
	}
	if every < 0 || time.Since(w.publishedAt) < max(every, publishShare*w.publishTook) {
		return nil
	}
	if err := w.flushRows(); err != nil {
		return err
	}
	return w.publish(true)
}

// publish closes the database, makes it a generation, and opens a clone of it if reopen is set. On
// an error the database is closed; committed data is kept in db/, and its journal leads the next
// writer through it.
func (w *Writer) publish(reopen bool) error {
	start := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.dirty && reopen {
		w.publishedAt = start
		return nil
	}
	if err := w.shut(); err != nil {
		return fmt.Errorf("closing %s: %w", w.path, err)
	}
	if err := w.seal(); err != nil {
		return fmt.Errorf("publishing %s: %w", w.path, err)
	}
	if reopen {
		if err := w.open(); err != nil {
			return err
		}
	}
	w.publishedAt = time.Now()
	w.publishTook = w.publishedAt.Sub(start)
	return nil
}

// seal turns the closed db/ into a generation, or removes it if it has nothing new.
func (w *Writer) seal() error {
	live := filepath.Join(w.path, liveName)
	if !w.dirty && w.gen > 0 {
		return removeTree(live)
	}
	if w.opts.Pulled {
		if err := w.notePulled(live); err != nil {
			return err
		}
	}
	gen, err := publish(w.path, live, w.from, w.shared)
	if err != nil {
		return err
	}
	w.gen, w.dirty = gen, false
	return removeOld(w.path, keptGenerations)
}

// Generation returns the number of the newest generation; 0 if there is none.
func (w *Writer) Generation() uint64 {
	w.writing.Lock()
	defer w.writing.Unlock()
	return w.gen
}

// Close publishes the written data and releases the lock. Only after it returned nil is everything
// on disk. A second Close does nothing.
func (w *Writer) Close() error {
	w.writing.Lock()
	defer w.writing.Unlock()
	if w.lock == nil {
		return nil
	}
	err := w.flushRows()
	if w.db != nil && w.dirty && manySmallLogs(filepath.Join(w.path, liveName)) {
		err = errors.Join(err, w.tidy())
	}
	if w.db != nil {
		err = errors.Join(err, w.publish(false))
	}
	if err == nil {
		w.markMerged()
	}
	err = errors.Join(err, releaseLock(w.lock))
	w.lock = nil
	return err
}

// publish turns the closed database in dir into the next generation. dir is gone when it returns
// without an error. Files that the generation from has too, which has the files shared, are shared
// with it; from may be 0 for none.
func publish(root, dir string, from uint64, shared []fileSum) (gen uint64, err error) {
	gens, err := generations(root)
	if err != nil {
		return 0, err
	}
	gen = 1
	if len(gens) > 0 {
		gen = gens[0] + 1
	}
	if err := dropForeign(dir); err != nil {
		return 0, err
	}
	sums, err := sumFiles(dir, genDir(root, from), shared)
	if err != nil {
		return 0, err
	}
	if err := files.WriteSynced(filepath.Join(dir, sumsName), appendSums(nil, sums)); err != nil {
		return 0, err
	}
	if err := settle(dir, sums); err != nil {
		return 0, err
	}
	parent := filepath.Join(root, gensName)
	if err := errors.Join(os.MkdirAll(parent, 0o755), files.SyncDir(dir)); err != nil {
		return 0, err
	}
	if err := os.Rename(dir, genDir(root, gen)); err != nil {
		return 0, err
	}
	err = errors.Join(files.SyncDir(parent), files.SyncDir(root))
	return gen, errors.Join(err, skipMissing(os.Remove(filepath.Join(genDir(root, gen), journalName))))
}

// dropForeign removes files that are no part of a generation: the discard statistics,
// and value logs without a value, which a reader could not map.
func dropForeign(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		keep := inGeneration(e.Name()) || e.Name() == pulledName ||
			e.Name() == journalName // until it is a generation
		if keep && isLog(e.Name()) {
			info, err := e.Info()
			if err != nil {
				return err
			}
			keep = info.Size() > vlogHeader
		}
		if !keep {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// sumFiles describes the files of a closed database, sorted by name. A value log that the generation
// in before has too is not read again: its checksum when it was written counts. A table that is equal
// to one there becomes a link, so that two generations use the disk space of one.
func sumFiles(dir, before string, shared []fileSum) (sums []fileSum, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !inGeneration(e.Name()) {
			continue
		}
		s := fileSum{name: e.Name()}
		path, old := filepath.Join(dir, s.name), filepath.Join(before, s.name)
		at := slices.IndexFunc(shared, func(o fileSum) bool { return o.name == s.name })
		if at >= 0 && isLog(s.name) && shared[at].sum != 0 && sameFile(path, old) {
			sums = append(sums, shared[at])
			continue
		}
		if s.size, s.sum, err = sumFile(path, true); err != nil {
			return nil, err
		}
		sums = append(sums, s)
		// Where the file system refuses a link, two copies do no harm.
		tmp := filepath.Join(dir, tmpPrefix+s.name)
		if at >= 0 && isTable(s.name) && shared[at] == s && os.Link(old, tmp) == nil {
			if err := os.Rename(tmp, path); err != nil {
				return nil, err
			}
		}
	}
	return sums, nil
}

// sameFile reports whether two paths are names of one file.
func sameFile(a, b string) bool {
	x, err := os.Lstat(a)
	if err != nil {
		return false
	}
	y, err := os.Lstat(b)
	return err == nil && os.SameFile(x, y)
}

// settle syncs all files: Badger syncs the pages of its files, and then cuts them to their size, and
// a power failure would bring the old size back. It gives them the permissions that the umask gave
// SUMS, because Badger makes some for their owner alone, and a store may have readers beside him. A
// file with another name has got them in the generation before, or is not ours to change.
func settle(dir string, sums []fileSum) error {
	model, err := os.Lstat(filepath.Join(dir, sumsName))
	if err != nil {
		return err
	}
	for _, s := range sums {
		path := filepath.Join(dir, s.name)
		info, err := os.Lstat(path)
		if err == nil && info.Mode() != model.Mode() && !files.HasNames(info) {
			err = os.Chmod(path, model.Mode().Perm())
		}
		if err = cmp.Or(err, files.SyncFile(path)); err != nil {
			return err
		}
	}
	return nil
}
