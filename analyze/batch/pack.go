package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/files"
)

// The records of a pack of collected captures.
const (
	packRecord  = "pack"  // packHead
	headsRecord = "heads" // []Head, sorted by path
	// With the number of the capture in the heads: an ingest.Profile, with names only of a pprof
	// file, and ownNames.
	stacksRecord, ownRecord = "stacks-", "own-"
	// With the number of the part: []places, of all captures.
	partRecord = "part-"
)

func partName(n int) string   { return fmt.Sprint(partRecord, n) }
func stacksName(n int) string { return fmt.Sprint(stacksRecord, n) }
func ownName(n int) string    { return fmt.Sprint(ownRecord, n) }

// packHead describes a pack.
type packHead struct {
	Parts int // that the locations are cut into, 0 for a capture that is not packed yet
}

// packSize is how many captures a pack has at most: so many are written again with a late capture,
// and are in memory while it is read.
var packSize = 256

// member is a capture in a pack.
type member struct {
	capture string      // its path
	pack    string      // file
	n       int         // in its heads
	state   string      // Head.state, where it is needed
	keep    ingest.Keep // Head.Keep, where it is needed
}

// openPack opens a pack. The caller closes the file.
func openPack(path string) (*recordFile, packHead, error) {
	var head packHead
	f, err := openRecords(path)
	if err != nil {
		return nil, head, err
	}
	ok, err := f.Get(packRecord, &head)
	if err != nil || !ok {
		return nil, head, errors.Join(cmp.Or(err, f.Fail("no collected captures")), f.Close())
	}
	return f, head, nil
}

// readPack opens a pack and reads its heads. The caller closes the file.
func readPack(path string) (*recordFile, packHead, []Head, error) {
	f, head, err := openPack(path)
	if err != nil {
		return nil, head, nil, err
	}
	var heads []Head
	if ok, err := f.Get(headsRecord, &heads); err != nil || !ok {
		return nil, head, nil, errors.Join(cmp.Or(err, f.Fail("no collected captures")), f.Close())
	}
	return f, head, heads, nil
}

// ReadHeads reads the descriptions of the captures in a pack.
func ReadHeads(path string) ([]Head, error) {
	f, _, heads, err := readPack(path)
	if err != nil {
		return nil, err
	}
	return heads, f.Close()
}

// openPacks keeps packs open while their captures are read one after another.
type openPacks map[string]*recordFile

// maxOpenPacks is how many of them are open.
const maxOpenPacks = 8

// get returns an open pack, valid until the next call of trim.
func (o openPacks) get(path string) (*recordFile, error) {
	if f := o[path]; f != nil {
		return f, nil
	}
	f, err := openRecords(path)
	if err == nil {
		o[path] = f
	}
	return f, err
}

// trim closes the packs if they are more than n.
func (o openPacks) trim(n int) {
	if len(o) > n {
		for _, f := range o {
			f.Close() // read only
		}
		clear(o)
	}
}

// packed is one capture in a pack.
type packed struct {
	file        *recordFile
	n           int
	head        Head
	stacks, own []byte
	places      []places
}

// read reads all but the head.
func (p *packed) read() error {
	var profile ingest.Profile
	var own ownNames
	for _, r := range []struct {
		name  string
		value any
		raw   *[]byte
	}{{stacksName(p.n), &profile, &p.stacks}, {ownName(p.n), &own, &p.own}} {
		e, ok := p.file.find(r.name)
		if !ok {
			return p.file.Fail("no record %q", r.name)
		}
		var err error
		if *r.raw, err = p.file.packed(e); err == nil {
			err = p.file.unpack(e, *r.raw, r.value)
		}
		if err != nil {
			return err
		}
	}
	if err := check(&profile); err != nil {
		return p.file.Fail("stacks of %s: %v", p.head.Path, err)
	}
	p.places = slices.DeleteFunc(placesOf(&profile), func(pl places) bool {
		return slices.Contains(own.Keys, pl.Key)
	})
	return nil
}

// readAtOnce is how many captures are in memory while they are packed.
const readAtOnce = 64

// writePack packs captures, sorted by path, into a file of a directory, named by their contents,
// and returns its path.
func writePack(ctx context.Context, dir string, list []member, parts, workers int) (string, error) {
	open := make(openPacks)
	defer open.trim(0)
	heads, err := headsOf(list)
	if err != nil {
		return "", err
	}
	states := make([]string, len(heads))
	for i := range heads {
		states[i] = heads[i].Key + heads[i].state()
	}
	path := filepath.Join(dir, digest(fmt.Sprint(parts, strings.Join(states, " ")))+stacksExt)
	var from []string
	for _, m := range list {
		if len(from) == 0 || from[len(from)-1] != m.pack {
			from = append(from, m.pack)
		}
	}
	w, err := createRecords(path, from...)
	if err != nil {
		return "", outputErr(err)
	}
	all := newGathering()
	for at := 0; at < len(list) && err == nil; at += readAtOnce {
		end := min(len(list), at+readAtOnce)
		err = copyCaptures(ctx, w, open, list[at:end], heads[at:end], at, all, workers)
	}
	cut := make([][]places, parts)
	for _, g := range all.list {
		n := partOf(g.Key, parts)
		cut[n] = append(cut[n], *g.union())
	}
	for n := 0; n < parts && err == nil; n++ {
		if len(cut[n]) > 0 {
			err = outputErr(w.Put(partName(n), pack(&cut[n])))
		}
	}
	if err == nil {
		err = outputErr(errors.Join(w.Put(packRecord, pack(&packHead{parts})),
			w.Put(headsRecord, pack(&heads))))
	}
	if err != nil {
		return "", errors.Join(err, w.Abandon())
	}
	return path, outputErr(w.Publish())
}

// headsOf reads the heads of captures.
func headsOf(list []member) ([]Head, error) {
	heads := make([]Head, len(list))
	at, pack := []Head(nil), ""
	for i, m := range list {
		if m.pack != pack {
			var err error
			if at, err = ReadHeads(m.pack); err != nil {
				return nil, err
			}
			pack = m.pack
		}
		heads[i] = at[m.n]
	}
	return heads, nil
}

// copyCaptures copies captures to a pack, the first as number from, and gathers their locations.
func copyCaptures(ctx context.Context, w *recordWriter, open openPacks, list []member, heads []Head,
	from int, all *gathering, workers int) error {
	some := make([]packed, len(list))
	for i, m := range list {
		f, err := open.get(m.pack)
		if err != nil {
			return err
		}
		some[i] = packed{file: f, n: m.n, head: heads[i]}
	}
	defer open.trim(maxOpenPacks)
	err := files.Each(ctx, workers, len(some), func(_ context.Context, i int) error {
		return some[i].read()
	})
	for i := range some {
		if err == nil {
			err = outputErr(errors.Join(w.Put(stacksName(from+i), some[i].stacks),
				w.Put(ownName(from+i), some[i].own)))
			all.add(some[i].places)
		}
	}
	return err
}
