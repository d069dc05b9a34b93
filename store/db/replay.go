package db

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"symbolize/store"
	"symbolize/store/db/files"
)

// setLeft moves an interrupted writer's work in db/ out of the way, to be repeated by
// takeLeft. A db/ beside one that was moved before is a replay that was interrupted: it
// begins anew.
func setLeft(root string) error {
	dir, left := filepath.Join(root, liveName), filepath.Join(root, leftName)
	_, err := os.Lstat(left)
	if err == nil {
		return removeTree(dir)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = os.Rename(dir, left)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, files.SyncDir(root))
}

// takeLeft repeats in the open database the transactions that an interrupted writer left.
// Transactions are repeated only on the generation that their database was cloned from; that
// generation contains everything published, whatever happened to the files.
func (w *Writer) takeLeft(ctx context.Context, l *live) error {
	left := filepath.Join(w.path, leftName)
	if _, err := os.Lstat(left); err != nil {
		return skipMissing(err)
	}
	r := &replay{w: w, dir: left, live: l, batch: &batch{ctx: ctx, w: w}}
	err := r.run()
	switch {
	case err == nil:
		return removeTree(left)
	case !errors.Is(err, store.ErrDamaged):
		return err
	}
	aside := filepath.Join(w.path, asideName)
	w.log.warn("an interrupted run left work that cannot be taken up: %v; %d of its transactions were, "+
		"the rest is set aside in %s: index the same files again", err, r.done, aside)
	return errors.Join(os.RemoveAll(aside), os.Rename(left, aside))
}

// skipMissing returns err unless it is for an absent file.
func skipMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// replay repeats the transactions of a journal.
type replay struct {
	w     *Writer
	dir   string // that was db/
	live  *live
	batch *batch
	done  int // transactions
	next  func() (*leftValue, bool)
}

// leftValue is a value in one of the logs that an interrupted writer left.
type leftValue struct {
	f *os.File
	e *logEntry
}

// run repeats transactions up to the first that is not whole. Its error wraps ErrDamaged if
// that is not simply the end: then all before are in the database all the same.
func (r *replay) run() error {
	f, size, err := openLeft(filepath.Join(r.dir, journalName))
	if errors.Is(err, fs.ErrNotExist) {
		return store.Damagef("it has no journal")
	}
	if err != nil {
		return err
	}
	defer f.Close()
	j, err := readJournal(f, size)
	if err != nil {
		return err
	}
	if j.from != r.live.from {
		if _, err := j.next(); errors.Is(err, errEndOfJournal) {
			return nil // nothing was written
		}
		return store.Damagef("it goes on from generation %d, which is not the newest sound one", j.from.gen)
	}
	var stop func()
	r.next, stop = iter.Pull(r.values())
	defer stop()
	for {
		b, err := j.next()
		if errors.Is(err, errEndOfJournal) {
			return r.batch.commit()
		}
		if err == nil {
			err = r.txn(b)
		}
		if errors.Is(err, store.ErrDamaged) {
			return cmp.Or(r.batch.commit(), err)
		}
		if err != nil {
			return err
		}
		r.done++
	}
}

// txn repeats one transaction. Nothing of it is repeated if a value of it is lost.
func (r *replay) txn(b []byte) error {
	all, err := decodeTxn(b)
	if err != nil {
		return err
	}
	// Of two changes with one key Badger has kept the later.
	last := make(map[string]int, len(all))
	for i := range all {
		last[string(all[i].key)] = i
	}
	missing := 0
	for i := range all {
		c := &all[i]
		switch {
		case last[string(c.key)] != i:
			c.key = nil
		case c.op == opLog:
			missing++
		case c.op == opPut:
			if _, err := unseal(c.key, c.value); err != nil {
				return err
			}
		}
	}
	if err := r.fetch(all, last, missing); err != nil {
		return err
	}
	for i := range all {
		c := &all[i]
		if c.key == nil {
			continue
		}
		// The batch keeps key and value; the record's memory is used again.
		e := &badger.Entry{Key: slices.Clone(c.key)}
		if c.op != opRemove {
			e.Value = slices.Clone(c.value)
		}
		if err := r.batch.add(e); err != nil {
			return err
		}
	}
	return nil
}

// fetch reads the values of a transaction that are in the logs. Transactions are there in
// the order of the journal, and each in no order; entries between them that the journal does
// not name were not committed.
func (r *replay) fetch(all []change, last map[string]int, missing int) error {
	for missing > 0 {
		v, ok := r.next()
		if !ok {
			return store.Damagef("%d values of a transaction are lost", missing)
		}
		i, ok := last[string(v.e.key)]
		if !ok || all[i].op != opLog || all[i].value != nil || uint64(v.e.size) != all[i].size ||
			v.e.size < crc32.Size {
			continue
		}
		value := make([]byte, v.e.size)
		if _, err := v.f.ReadAt(value, v.e.value); err != nil {
			return store.Damagef("%v", err)
		}
		if binary.LittleEndian.Uint32(value[len(value)-crc32.Size:]) != all[i].sum {
			continue
		}
		if _, err := unseal(all[i].key, value); err != nil {
			return err
		}
		all[i].value = value
		missing--
	}
	return nil
}

// values visits the entries of the logs that the interrupted writer began, in the order of
// writing. A log that cannot be read ends early.
func (r *replay) values() iter.Seq[*leftValue] {
	return func(yield func(*leftValue) bool) {
		for _, name := range r.logs() {
			f, size, err := openLeft(filepath.Join(r.dir, name))
			if err != nil {
				continue
			}
			stopped := errors.New("stopped")
			err = walkLog(f, size, func(e *logEntry) error {
				if !yield(&leftValue{f, e}) {
					return stopped
				}
				return nil
			})
			f.Close()
			if err == stopped {
				return
			}
		}
	}
}

// logs returns the names of the value logs that the generation does not have, in the order
// of their numbers.
func (r *replay) logs() (names []string) {
	entries, _ := os.ReadDir(r.dir)
	number := make(map[string]uint64)
	for _, e := range entries {
		name := e.Name()
		n, err := strconv.ParseUint(strings.TrimSuffix(name, ".vlog"), 10, 32)
		if !isLog(name) || err != nil ||
			slices.ContainsFunc(r.live.shared, func(s fileSum) bool { return s.name == name }) {
			continue
		}
		names, number[name] = append(names, name), n
	}
	slices.SortFunc(names, func(a, b string) int { return int(int64(number[a]) - int64(number[b])) })
	return names
}

// openLeft opens a file of an interrupted writer to read it. Other than plain files are damage.
func openLeft(path string) (*os.File, int64, error) {
	f, err := files.Open(path, os.O_RDONLY, 0)
	if errors.Is(err, store.ErrUnsafe) {
		return nil, 0, store.Damagef("%v", err)
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("%s: %w", path, err)
	}
	return f, info.Size(), nil
}
