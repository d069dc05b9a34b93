package db

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"symbolize/ingest/files"
	"symbolize/store"
)

// indexInfo is what the file INDEX of a generation says:
//
//	"symbolize index 2\n"
//	"schema 3\n"
//	"level N\n"               the highest of its facts
//	"facts DIGEST\n"          of each that it has
//	"past DIGEST\n"           of each that these replace
//	"file NAME SIZE CRC\n"    of each file of the database
//	"end CRC\n"               CRC-32C of all lines before
//
// Badger ends the process on some damage to its files, and answers a value that it cannot read with
// an empty one and no error, so the files are read through before it sees them. The first version had
// a checksum in each value, too.
type indexInfo struct {
	level uint64
	facts map[digest]bool
	past  map[digest]bool
	files []fileSum
}

// fileSum is the size and the CRC-32C of a file of the database.
type fileSum struct {
	name string
	size int64
	sum  uint32
}

// has reports whether the index has facts, or others that replace them.
func (x *indexInfo) has(id digest) bool { return x.facts[id] || x.past[id] }

// inGeneration reports whether a file of a closed database belongs into a generation. DISCARD serves
// only value-log collection, which is never run.
func inGeneration(name string) bool {
	return isLog(name) || strings.HasSuffix(name, ".sst") || name == "MANIFEST" || name == "KEYREGISTRY"
}

// isLog reports whether a file is a value log.
func isLog(name string) bool { return strings.HasSuffix(name, ".vlog") }

// maxIndexInfo bounds INDEX, in bytes.
const maxIndexInfo = 64 << 20

func (x *indexInfo) encode() []byte {
	b := fmt.Appendf(nil, "symbolize index 2\nschema %d\nlevel %d\n", store.SchemaVersion, x.level)
	b = appendDigests(appendDigests(b, "facts", x.facts), "past", x.past)
	for _, s := range x.files {
		b = fmt.Appendf(b, "file %s %d %08x\n", s.name, s.size, s.sum)
	}
	return fmt.Appendf(b, "end %08x\n", crc32.Checksum(b, castagnoli))
}

func appendDigests(b []byte, word string, list map[digest]bool) []byte {
	var lines []string
	for id := range list {
		lines = append(lines, word+" "+id.String()+"\n")
	}
	slices.Sort(lines)
	return append(b, strings.Join(lines, "")...)
}

// parseIndexInfo reads the text of INDEX; path is for messages.
func parseIndexInfo(path string, b []byte) (*indexInfo, error) {
	var schema int
	if _, err := fmt.Sscanf(string(b[:min(len(b), 64)]), "symbolize index 2\nschema %d\n",
		&schema); err != nil {
		return nil, store.Damagef("%s: no index", path)
	}
	if schema < store.SchemaVersion { // it is made again
		return nil, store.Damagef("%s: index of schema %d", path, schema)
	}
	if err := store.CheckSchema(path, schema); err != nil {
		return nil, err
	}
	at := strings.LastIndex(string(b), "end ")
	if at < 0 || string(b[at:]) != fmt.Sprintf("end %08x\n", crc32.Checksum(b[:at], castagnoli)) {
		return nil, store.Damagef("%s: checksum", path)
	}
	x := &indexInfo{facts: make(map[digest]bool), past: make(map[digest]bool)}
	lines := strings.Split(strings.TrimSuffix(string(b[:at]), "\n"), "\n")
	for _, line := range lines[2:] {
		word, rest, _ := strings.Cut(line, " ")
		ok := true
		switch word {
		case "level":
			var err error
			x.level, err = strconv.ParseUint(rest, 10, 63)
			ok = err == nil
		case "facts", "past":
			var id digest
			if id, ok = store.ParseDigest(rest); word == "facts" {
				x.facts[id] = true
			} else {
				x.past[id] = true
			}
		case "file":
			var s fileSum
			_, err := fmt.Sscanf(rest, "%s %d %x", &s.name, &s.size, &s.sum)
			ok = err == nil && inGeneration(s.name) && s.name == filepath.Base(s.name)
			x.files = append(x.files, s)
		default:
			ok = false
		}
		if !ok {
			return nil, store.Damagef("%s: line %q", path, line)
		}
	}
	return x, nil
}

// checkIndex reads INDEX of a generation and compares its files.
func checkIndex(dir string) (*indexInfo, error) {
	x, err := checkFiles(dir)
	if errors.Is(err, store.ErrUnsafe) { // a wrong type of file
		err = store.Damagef("%v", err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		if _, gone := os.Lstat(dir); gone == nil {
			err = store.Damagef("%v", err) // a file of it is lost, not the generation
		}
	}
	return x, err
}

func checkFiles(dir string) (*indexInfo, error) {
	if err := files.CheckDirs(filepath.Dir(dir), filepath.Base(dir)); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, indexName)
	b, err := readLimited(path, maxIndexInfo)
	if err != nil {
		return nil, err
	}
	x, err := parseIndexInfo(path, b)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries { // which Badger would open
		name := e.Name()
		if (inGeneration(name) || strings.HasSuffix(name, ".mem")) &&
			!slices.ContainsFunc(x.files, func(s fileSum) bool { return s.name == name }) {
			return nil, store.Damagef("%s does not belong to the generation", filepath.Join(dir, name))
		}
	}
	for _, s := range x.files {
		now, err := sumFile(dir, s.name)
		if err == nil && now != s {
			err = store.Damagef("%s: %d bytes, checksum %08x, were %d, %08x", filepath.Join(dir, s.name),
				now.size, now.sum, s.size, s.sum)
		}
		if err != nil {
			return nil, err
		}
	}
	return x, nil
}

// sumFile returns the size and the checksum of a file.
func sumFile(dir, name string) (s fileSum, err error) {
	f, err := files.OpenPlain(filepath.Join(dir, name), os.O_RDONLY, 0)
	if err != nil {
		return s, err
	}
	defer f.Close()
	h := crc32.New(castagnoli)
	n, err := io.Copy(h, f)
	return fileSum{name, n, h.Sum32()}, err
}

// readLimited reads a file of at most limit bytes.
func readLimited(path string, limit int64) ([]byte, error) {
	f, err := files.OpenPlain(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = store.Damagef("%s: over %d bytes", path, limit)
	}
	return b, err
}

// indexWriter writes the database of a generation, in a directory of its own.
type indexWriter struct {
	root, dir string
	db        *badger.DB
	txn       *badger.Txn
	size      int64 // of txn
	count     int
	mapped    int64     // bytes since the last call of files.ForgetMapped
	files     []fileSum // once it is closed
}

// newIndex begins an index, in a new directory beside the generations if dir is "".
func newIndex(root, dir string) (_ *indexWriter, err error) {
	if dir == "" {
		if dir, err = os.MkdirTemp(filepath.Join(root, gensName), tmpPrefix); err != nil {
			return nil, spaceError(err)
		}
	}
	db, err := openBadger(badgerOptions(dir, false, new(logSink)))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &indexWriter{root: root, dir: dir, db: db, txn: db.NewTransaction(true)}, nil
}

// entryOverhead is about what Badger adds to an entry.
const entryOverhead = 64

// put adds an entry. Key and payload are kept.
func (w *indexWriter) put(key, payload []byte) error {
	size := int64(len(key)+len(payload)) + entryOverhead
	if w.size+size > maxTxn || w.count == maxTxnEntries {
		if err := w.txn.Commit(); err != nil {
			return err
		}
		w.txn, w.size, w.count = w.db.NewTransaction(true), 0, 0
	}
	w.size, w.count = w.size+size, w.count+1
	if w.mapped += size; w.mapped > maxMapped {
		w.mapped = 0
		files.ForgetMapped(w.dir)
	}
	return w.txn.SetEntry(badger.NewEntry(key, payload))
}

// discard removes a generation that is not finished.
func (w *indexWriter) discard() error {
	w.txn.Discard()
	return errors.Join(w.db.Close(), os.RemoveAll(w.dir))
}

// close closes the database and writes INDEX. All files are on disk then.
func (w *indexWriter) close(info indexInfo) error {
	err := w.txn.Commit()
	if err = errors.Join(err, w.db.Close()); err != nil {
		return errors.Join(err, os.RemoveAll(w.dir))
	}
	if err := w.finish(info); err != nil {
		return errors.Join(spaceError(err), os.RemoveAll(w.dir))
	}
	return nil
}

// finish drops files that are no part of a generation, such as logs without a value, which a reader
// could not map, and describes and syncs the others.
func (w *indexWriter) finish(x indexInfo) error {
	x.files = nil
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		if !inGeneration(e.Name()) || isLog(e.Name()) && info.Size() <= vlogHeader {
			if err := os.RemoveAll(filepath.Join(w.dir, e.Name())); err != nil {
				return err
			}
			continue
		}
		s, err := sumFile(w.dir, e.Name())
		if err != nil {
			return err
		}
		x.files = append(x.files, s)
	}
	w.files = x.files
	text := filepath.Join(w.dir, indexName)
	if err := files.WriteSynced(text, x.encode()); err != nil {
		return err
	}
	model, err := os.Lstat(text)
	if err != nil {
		return err
	}
	for _, s := range x.files {
		path := filepath.Join(w.dir, s.name)
		// Badger makes some files for their owner alone, and a store may have other readers.
		if err := cmp.Or(os.Chmod(path, model.Mode().Perm()), files.SyncFile(path)); err != nil {
			return err
		}
	}
	// As the umask has it for directories.
	mode := model.Mode().Perm()
	return cmp.Or(os.Chmod(w.dir, mode|mode>>2&0o111), files.SyncDir(w.dir))
}

// vlogHeader is the size of the header of a Badger value log.
const vlogHeader = 20

// publish gives a closed index the next number.
func (w *indexWriter) publish() (gen uint64, err error) {
	for {
		gens, err := generations(w.root)
		if err != nil {
			return 0, err
		}
		gen = 1
		if len(gens) > 0 {
			gen = gens[0] + 1
		}
		err = os.Rename(w.dir, genDir(w.root, gen))
		if _, there := os.Lstat(genDir(w.root, gen)); err != nil && there == nil {
			continue // another writer, where the file system cannot lock
		}
		if err != nil {
			return 0, err
		}
		return gen, files.SyncDir(filepath.Join(w.root, gensName))
	}
}

// hexOf is the beginning of a digest, for messages.
func hexOf(id digest) string { return hex.EncodeToString(id[:6]) }
