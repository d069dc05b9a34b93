package db

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"symbolize/buildid"
	"symbolize/ingest/files"
	"symbolize/store"
)

// The days on which objects were last indexed or used are kept beside the generations, because
// readers cannot write to those, in text files of
//
//	used/DAY-USER   notes of processes of this user on a day (UTC)
//	used/DAY        older notes, joined
//	used/names-USER objects with many names that look-ups demangled
//
// with an object in each line as archives name it. Files of a day only grow, by one write of whole
// lines, so that no reader waits for another. They are notes: processes that may not write to the
// store leave none, a lost line makes its object undated, and GC dates those anew instead of
// dropping them. A line that was cut names nothing.

const (
	dayForm = time.DateOnly
	// namesPrefix begins the names of files of MarkDemangled.
	namesPrefix = "names-"
	// maxUses bounds the bytes read of one file.
	maxUses = 64 << 20
	// manyUses is how many files of days are made one of each object's last day.
	manyUses = 32
)

// day returns the day of a time, UTC.
func day(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// MarkUsed notes that objects of the store at path were indexed or used today. It needs no lock,
// and processes that may not write to the store leave no note.
func MarkUsed(path string, ids []buildid.ID) error {
	err := unlessReadOnly(markUsed(path, ids, time.Now()))
	if err != nil {
		return fmt.Errorf("the store's days of last use are not noted: %w", err)
	}
	return nil
}

// unlessReadOnly returns an error, but nil for one of a caller who may not write.
func unlessReadOnly(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil
	}
	return err
}

// MarkDemangled notes that a look-up demangled many names of an object, for the next run of index;
// see Demangled. It needs no lock, and processes that may not write to the store leave no note.
func (r *Reader) MarkDemangled(id buildid.ID) error {
	return unlessReadOnly(note(r.path, namesPrefix, []buildid.ID{id}))
}

// Demangled returns the objects that were noted by MarkDemangled: to keep their names demangled
// saves look-ups most of their time. Files that this process may not read are left out.
func (r *Reader) Demangled() (noted func(buildid.ID) bool, err error) {
	if err := files.CheckDirs(r.path, usesName); err != nil {
		return nil, err
	}
	objects := make(map[buildid.ID]bool)
	names, err := filepath.Glob(filepath.Join(r.path, usesName, namesPrefix+"*"))
	for _, name := range names {
		name = filepath.Join(usesName, filepath.Base(name))
		f, openErr := files.OpenPlainIn(r.path, name, os.O_RDONLY, 0)
		if openErr != nil {
			err = errors.Join(err, unlessReadOnly(openErr))
			continue
		}
		_, readErr := eachUse(f, func(object string) { objects[idOf(object)] = true })
		err = errors.Join(err, readErr, f.Close())
	}
	return func(id buildid.ID) bool { return objects[id] }, err
}

// markUsed notes each object once a day. The error wraps fs.ErrPermission where the caller may not
// write.
func markUsed(path string, ids []buildid.ID, now time.Time) error {
	return note(path, day(now).Format(dayForm)+"-", ids)
}

// note adds the objects that are not in it to this user's file of that prefix.
func note(path, prefix string, ids []buildid.ID) (err error) {
	if len(ids) == 0 {
		return nil
	}
	if err := makeUses(path); err != nil {
		return err
	}
	name := filepath.Join(usesName, prefix+strconv.Itoa(os.Getuid()))
	f, err := files.OpenPlainIn(path, name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	fresh := make(map[buildid.ID]bool, len(ids))
	for _, id := range ids {
		fresh[id] = true
	}
	whole, err := eachUse(f, func(object string) { delete(fresh, idOf(object)) })
	if err != nil || len(fresh) == 0 {
		return err
	}
	var text []byte
	if !whole {
		text = append(text, '\n')
	}
	for _, id := range slices.SortedFunc(maps.Keys(fresh), buildid.ID.Compare) {
		text = append(append(text, store.ObjectName(id)...), '\n')
	}
	_, err = f.Write(text)
	return err
}

// idOf is the inverse of store.ObjectName; the zero ID for other texts.
func idOf(object string) buildid.ID {
	space, hex, _ := strings.Cut(object, "-")
	if space != buildid.GNU.String() {
		hex = space + ":" + hex
	}
	id, _ := buildid.Parse(hex)
	return id
}

// makeUses makes the directory of days. It gets the permissions of the store, and only the store's
// owner makes it: the owner could not write to another user's directory.
func makeUses(path string) error {
	dir := filepath.Join(path, usesName)
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, files.CheckDirs(path, usesName))
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !files.IsOwn(info) {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: fs.ErrPermission}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Chmod(dir, info.Mode().Perm())
}

// eachUse calls fn for the lines of a file, and reports whether its last one is whole.
func eachUse(r io.Reader, fn func(object string)) (whole bool, err error) {
	in := bufio.NewReader(io.LimitReader(r, maxUses))
	for {
		line, err := in.ReadString('\n')
		object, found := strings.CutSuffix(line, "\n")
		if found {
			fn(object)
			continue
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return line == "", err
	}
}

// usesFiles returns the names of the files of a store's past days and of today, by day. Days to
// come are of a clock that was wrong: wrong is their number.
func usesFiles(path string, now time.Time) (days map[time.Time][]string, wrong []string, err error) {
	if err := files.CheckDirs(path, usesName); err != nil {
		return nil, nil, err
	}
	entries, err := os.ReadDir(filepath.Join(path, usesName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	days = make(map[time.Time][]string)
	for _, e := range entries {
		name := e.Name()
		at, err := time.Parse(dayForm, name[:min(len(name), len(dayForm))])
		switch {
		case err != nil:
		case at.After(now):
			wrong = append(wrong, name)
		default:
			days[at] = append(days[at], name)
		}
	}
	return days, wrong, nil
}

// lastUses has the last day of each object that has one, as days since 1970, by objectHash.
type lastUses map[uint64]int32

// dayOf returns the days since 1970.
func dayOf(at time.Time) int32 { return int32(at.Unix() / (24 * 60 * 60)) }

// day returns an object's day; the zero time if it has none.
func (u lastUses) day(id buildid.ID) (at time.Time) {
	if days, ok := u[objectHash(id)]; ok {
		at = time.Unix(int64(days)*24*60*60, 0).UTC()
	}
	return at
}

// readUses returns the last days.
func readUses(path string, now time.Time) (lastUses, error) {
	last := make(lastUses)
	err := eachDay(path, now, func(at time.Time, object string) {
		if id := idOf(object); !id.IsZero() {
			last[objectHash(id)] = dayOf(at)
		}
	})
	return last, err
}

// LastUsed returns the last day, UTC, on which each object was indexed or used, by its
// store.ObjectName. Objects of which none is known are not in it.
func (r *Reader) LastUsed() (map[string]time.Time, error) {
	last := make(map[string]time.Time)
	return last, eachDay(r.path, time.Now(), func(at time.Time, object string) { last[object] = at })
}

// eachDay calls fn for the lines of all days, the oldest day first.
func eachDay(path string, now time.Time, fn func(at time.Time, object string)) error {
	days, _, err := usesFiles(path, now)
	if err != nil {
		return err
	}
	for _, at := range slices.SortedFunc(maps.Keys(days), time.Time.Compare) {
		if err := usesOfDay(path, days[at], func(object string) { fn(at, object) }); err != nil {
			return err
		}
	}
	return nil
}

// usesOfDay calls fn for the lines of a day's files.
func usesOfDay(path string, names []string, fn func(object string)) error {
	for _, name := range names {
		f, err := files.OpenPlainIn(path, filepath.Join(usesName, name), os.O_RDONLY, 0)
		if err != nil {
			return err
		}
		_, err = eachUse(f, fn)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// compactUses reduces the files from before yesterday, to which no process writes any more, to the
// last day of each object that keep accepts; a nil keep accepts all.
func compactUses(path string, now time.Time, keep func(buildid.ID) bool) error {
	days, wrong, err := usesFiles(path, now)
	if err != nil {
		return err
	}
	last, err := readUses(path, now)
	if err != nil {
		return err
	}
	remove := wrong
	for at, names := range days {
		if !at.Before(day(now).AddDate(0, 0, -1)) {
			continue
		}
		var lines []string
		err := usesOfDay(path, names, func(object string) {
			id := idOf(object)
			if last[objectHash(id)] == dayOf(at) && (keep == nil || keep(id)) {
				lines = append(lines, object+"\n")
			}
		})
		if err != nil {
			return err
		}
		name := at.Format(dayForm)
		remove = append(remove, slices.DeleteFunc(names, func(n string) bool { return n == name })...)
		if len(lines) == 0 {
			remove = append(remove, name)
			continue
		}
		slices.Sort(lines)
		tmp := filepath.Join(path, usesName, tmpPrefix+name)
		if err := files.WriteSynced(tmp, []byte(strings.Join(slices.Compact(lines), ""))); err != nil {
			return err
		}
		if err := os.Rename(tmp, filepath.Join(path, usesName, name)); err != nil {
			return err
		}
	}
	for _, name := range remove { // after their replacement is there
		err := os.Remove(filepath.Join(path, usesName, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// markMerged notes the objects that a Writer has merged, and tidies the notes up when they are
// many.
func (w *Writer) markMerged() {
	now := time.Now()
	err := markUsed(w.path, slices.Collect(maps.Keys(w.objects)), now)
	w.objects = nil
	if days, _, listErr := usesFiles(w.path, now); listErr == nil && len(days) > manyUses {
		err = errors.Join(err, compactUses(w.path, now, nil))
	}
	if err != nil {
		w.log.warn("days of last use are not noted: %v", err)
	}
}

// Used returns the requested and found objects since the generation was opened, sorted.
func (r *Reader) Used() []buildid.ID {
	r.usedMu.Lock()
	defer r.usedMu.Unlock()
	return slices.SortedFunc(maps.Keys(r.used), func(a, b buildid.ID) int {
		return cmp.Compare(store.ObjectName(a), store.ObjectName(b))
	})
}

// MarkUsed is the function of that name for the objects of Used.
func (r *Reader) MarkUsed() error { return MarkUsed(r.path, r.Used()) }
