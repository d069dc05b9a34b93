package bundle

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"symbolize/ingest/decode"
	"symbolize/ingest/files"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/procmaps"
)

// mergeWays is how many segments are merged at a time: more segments are first merged in groups, so
// that memory and open files do not grow with the length of a recording.
const mergeWays = 8

// mergeSegments adds the content of segments to a writer as if they had been recorded as one
// bundle, and returns its manifest. An error of a segment becomes a warning.
func mergeSegments(name string, r io.ReaderAt, list []segment, to *Writer) (*Manifest, []error,
	error) {
	var warnings []error
	var temp *os.File
	defer func() {
		if temp != nil {
			temp.Close()
		}
	}()
	for len(list) > mergeWays {
		next, groups, w, err := mergeGroups(name, r, list)
		warnings = append(warnings, w...)
		if temp != nil {
			temp.Close()
		}
		temp = next
		if err != nil {
			return nil, warnings, err
		}
		r, list = temp, groups
	}
	m, w, err := mergeGroup(name, r, list, to)
	return m, append(warnings, w...), err
}

// mergeGroups merges each mergeWays segments into one, in a temporary file without a name.
func mergeGroups(name string, r io.ReaderAt, list []segment) (f *os.File, groups []segment,
	warnings []error, err error) {
	w, err := createTemp()
	if err != nil {
		return nil, nil, nil, err
	}
	defer w.Abort()
	if f, err = files.Temp(tempPattern); err != nil {
		return nil, nil, nil, err
	}
	size := int64(0)
	for group := range slices.Chunk(list, mergeWays) {
		if err != nil {
			break
		}
		var m *Manifest
		var more []error
		m, more, err = mergeGroup(name, r, group, w)
		warnings = append(warnings, more...)
		at := size + segmentHead
		err = cmp.Or(err, w.appendSegment(f, &size, m), w.forget())
		groups = append(groups, segment{at, size - at})
	}
	return f, groups, warnings, err
}

// merger merges segments into a writer.
type merger struct {
	name     string
	to       *Writer
	from     []*Bundle
	manifest Manifest
	programs map[programKey]uint32 // new numbers that differ from the old
	warnings []error
}

// programKey is a program of a process in a segment; see "Stacks" in the package comment.
type programKey struct {
	from    int
	pid     int32
	program uint32
}

func mergeGroup(name string, r io.ReaderAt, list []segment, to *Writer) (_ *Manifest, _ []error,
	err error) {
	x := &merger{name: name, to: to, programs: make(map[programKey]uint32)}
	defer func() {
		for _, b := range x.from {
			err = errors.Join(err, b.Close())
		}
	}()
	for _, s := range list {
		b, err := openSegment(name, r, s)
		if err != nil { // unexpected, as its digest is right
			x.warn("%v", err)
			b.Close()
			continue
		}
		x.warnings = append(x.warnings, b.Warnings...)
		x.from = append(x.from, b)
	}
	if len(x.from) == 0 {
		return nil, x.warnings, fmt.Errorf("%s: %w: none of its parts can be read", name,
			ErrNotBundle)
	}
	x.mergeManifests()
	if err := x.mergeEntries(); err != nil {
		return nil, x.warnings, fmt.Errorf("%s: %w", name, err)
	}
	return &x.manifest, x.warnings, nil
}

func (x *merger) warn(format string, args ...any) {
	if len(x.warnings) < maxWarnings {
		x.warnings = append(x.warnings, fmt.Errorf(format, args...))
	}
}

// mergeManifests merges the manifests: most fields come from the last one.
func (x *merger) mergeManifests() {
	x.manifest = x.from[len(x.from)-1].Manifest
	m := &x.manifest
	m.Begin, m.Lost, m.Warnings, m.Missing = x.from[0].Manifest.Begin, nil, nil, nil
	missing := make(map[uint32]bool)
	seen := make(map[string]bool)
	for _, b := range x.from {
		if len(b.Manifest.Lost) > 0 && m.Lost == nil {
			m.Lost = make(map[string]uint64)
		}
		for cause, n := range b.Manifest.Lost {
			m.Lost[cause] += n
		}
		for _, text := range b.Manifest.Warnings {
			if !seen[text] && len(m.Warnings) < maxWarnings {
				seen[text] = true
				m.Warnings = append(m.Warnings, text)
			}
		}
		for _, p := range b.Manifest.Missing {
			if !missing[p.ID] && len(missing) < maxMissing {
				missing[p.ID] = true
				m.Missing = append(m.Missing, p)
			}
		}
	}
	slices.SortFunc(m.Missing, func(a, b MissingProgram) int { return cmp.Compare(a.ID, b.ID) })
}

// mergeEntries adds the entries: stacks and the side band are merged, distinct mappings are kept,
// and of other entries the last one of a name is used.
func (x *merger) mergeEntries() error {
	done := make(map[string]bool)
	if err := x.mergeMappings(done); err != nil {
		return err
	}
	if err := x.mergeSamples(done); err != nil {
		return err
	}
	if err := x.mergePerfData(done); err != nil {
		return err
	}
	for _, b := range slices.Backward(x.from) {
		for _, name := range b.Names() {
			if done[name] {
				continue
			}
			done[name] = true
			r, size, err := b.Entry(name)
			if err == nil {
				err = x.add(name, io.NewSectionReader(r, 0, size))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds an entry, unless there are too many.
func (x *merger) add(name string, r io.Reader) error {
	if len(x.to.entries) >= maxMerged {
		if x.manifest.Lost == nil {
			x.manifest.Lost = make(map[string]uint64)
		}
		x.manifest.Lost["entries over the limit of a bundle"]++
		return nil
	}
	return x.to.AddReader(name, r)
}

// maxMergedMaps limits the mappings of one program, in bytes. capture reads 16 MiB at most, and adds
// some to them.
const maxMergedMaps = 64 << 20

// mergedMaps are mappings of a process in one of the segments.
type mergedMaps struct {
	from    int
	program uint32
	name    string
	sum     [sha256.Size]byte
}

// mergeMappings adds the mappings of processes; the newest ones of a process keep their number.
func (x *merger) mergeMappings(done map[string]bool) error {
	all := make(map[int32][]mergedMaps)
	for from, b := range slices.Backward(x.from) {
		for _, name := range b.Names() {
			if pid, program, ok := MapsProgram(name); ok {
				done[name] = true
				all[pid] = append(all[pid], mergedMaps{from, program, name, b.entries[b.index[name]].sum})
			}
		}
	}
	for _, pid := range slices.Sorted(maps.Keys(all)) {
		if err := x.mergeProcess(pid, all[pid]); err != nil {
			return err
		}
	}
	return nil
}

// mergeProcess adds the mappings of one process, newest first. Equal mappings in two segments are
// of one program, and those with the vdso at the same address where no code differs: a program maps
// more code as it runs, and the files of its run-time compiler are for its last mappings.
func (x *merger) mergeProcess(pid int32, list []mergedMaps) error {
	known := make(map[[sha256.Size]byte]int)
	var layouts []procmaps.Layout
	for _, m := range list {
		n, ok := known[m.sum]
		if !ok {
			text, err := x.from[m.from].ReadEntry(m.name, maxMergedMaps)
			if err != nil {
				return err
			}
			layout := procmaps.NewLayout(text)
			for n = range layouts {
				if isSameProgram(&layouts[n], &layout) && layouts[n].Add(layout.Lines()) {
					ok = true
					break
				}
			}
			if !ok {
				n = len(layouts)
				layouts = append(layouts, layout)
			}
			known[m.sum] = n
		}
		if uint32(n) != m.program {
			x.programs[programKey{m.from, pid, m.program}] = uint32(n)
		}
	}
	for n := range layouts {
		if err := x.add(ProgramMapsName(pid, uint32(n)), bytes.NewReader(layouts[n].Text())); err != nil {
			return err
		}
	}
	return nil
}

// isSameProgram reports whether two layouts have the vdso at the same address, which the kernel
// chooses for each program.
func isSameProgram(a, b *procmaps.Layout) bool {
	at := func(l *procmaps.Layout) uint64 {
		for _, line := range l.Lines() {
			if line.File.Path == procmaps.VDSO {
				return line.Start
			}
		}
		return 0
	}
	return at(a) != 0 && at(a) == at(b)
}

// mergeFiles returns the files of all segments, sorted by build ID, each ID once.
func (x *merger) mergeFiles(event string) []File {
	paths := make(map[string]string)
	for _, b := range x.from {
		for i := range b.Manifest.Samples {
			if b.Manifest.Samples[i].Event != event {
				continue
			}
			for _, f := range b.Manifest.Samples[i].Files {
				if was, ok := paths[f.BuildID]; !ok || f.Path < was {
					paths[f.BuildID] = f.Path
				}
			}
		}
	}
	var list []File
	for _, id := range slices.Sorted(maps.Keys(paths)) {
		list = append(list, File{BuildID: id, Path: paths[id]})
	}
	return list
}

// addTemp adds an entry that is first written to a temporary file.
func (x *merger) addTemp(name string, write func(f *os.File) error) (err error) {
	f, err := files.Temp(tempPattern)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := write(f); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return x.to.AddReader(name, f)
}

// keyFields are the offsets of the fields of a count's key by which counts are sorted, or which are
// renumbered; -1 for a missing field.
type keyFields struct {
	threadFields
	waker threadFields
}

type threadFields struct{ user, kernel, pid, comm, program int }

// noThread has no field.
var noThread = threadFields{-1, -1, -1, -1, -1}

const commSize = 16

// parseKey finds fields in a key of this size: "user_stack_id:0:4,kernel_stack_id:4:4,…".
func parseKey(text string, size uint32) (f keyFields, err error) {
	f = keyFields{noThread, noThread}
	for part := range strings.SplitSeq(text, ",") {
		name, rest, _ := strings.Cut(part, ":")
		at, length, _ := strings.Cut(rest, ":")
		of, to, want := &f.threadFields, (*int)(nil), "4"
		name, waker := strings.CutPrefix(name, "waker_")
		if waker {
			of = &f.waker
		}
		switch name {
		case "user_stack_id":
			to = &of.user
		case "kernel_stack_id":
			to = &of.kernel
		case "tgid":
			to = &of.pid
		case "program":
			to = &of.program
		case "comm":
			to, want = &of.comm, strconv.Itoa(commSize)
		default:
			continue
		}
		n, _ := strconv.Atoi(want)
		if *to, err = strconv.Atoi(at); err != nil || length != want || *to < 0 ||
			*to+n > int(size) {
			return f, fmt.Errorf("key %q: invalid field %q", text, part)
		}
	}
	if w := &f.waker; f.user < 0 || f.kernel < 0 || f.pid < 0 || f.comm < 0 ||
		min(w.user, w.kernel, w.pid, w.comm, w.program) < 0 && *w != noThread {
		return f, fmt.Errorf("key %q: a field is missing", text)
	}
	return f, nil
}

// compare orders counts by comm, process and stacks.
func (f *keyFields) compare(a, b []byte, o binary.ByteOrder) int {
	return cmp.Or(bytes.Compare(a[f.comm:][:commSize], b[f.comm:][:commSize]),
		cmp.Compare(o.Uint32(a[f.pid:]), o.Uint32(b[f.pid:])),
		cmp.Compare(int32(o.Uint32(a[f.user:])), int32(o.Uint32(b[f.user:]))),
		cmp.Compare(int32(o.Uint32(a[f.kernel:])), int32(o.Uint32(b[f.kernel:]))),
		bytes.Compare(a, b))
}

// sideFile is the perf.data of a segment.
type sideFile struct {
	*perfdata.File
	r io.ReaderAt
}

// mergePerfData writes one perf.data with the records of all segments in their order, the features
// of the last, and the BPF programs of all.
func (x *merger) mergePerfData(done map[string]bool) error {
	done[PerfDataName] = true
	var files []sideFile
	for _, b := range x.from {
		r, size, err := b.Entry(PerfDataName)
		if err != nil {
			continue // it is missing, or reported in b.Warnings
		}
		f, err := perfdata.Open(b.Name+": "+PerfDataName, r, size)
		if err == nil && len(f.Events) > 0 && (len(files) == 0 || f.BigEndian == files[0].BigEndian) {
			files = append(files, sideFile{f, r})
		} else {
			x.warn("%s: the side band of a part of the recording cannot be read: %v", x.name, err)
		}
	}
	if len(files) == 0 {
		return nil
	}
	return x.addTemp(PerfDataName, func(f *os.File) error { return x.writePerfData(f, files) })
}

func (x *merger) writePerfData(to *os.File, files []sideFile) error {
	last := files[len(files)-1]
	w, err := perfdata.NewWriter(to, last.BigEndian, last.Events)
	if err != nil {
		return err
	}
	var raw []byte
	for _, f := range files {
		records := f.AllRecords()
		for records.Next() {
			rec := records.Record()
			if rec.Type == perfdata.TypeFinishedRound { // it marks rounds, not data
				continue
			}
			raw = append(rec.AppendHeader(raw[:0], f.BigEndian), rec.Body...)
			if err := w.WriteRecord(raw); err != nil {
				return err
			}
		}
		if err := records.Err(); err != nil {
			x.warn("%s: %v", x.name, err)
		}
	}
	features := &last.Features
	w.SetString(perfdata.FeatureHostname, features.Hostname)
	w.SetString(perfdata.FeatureOSRelease, features.OSRelease)
	w.SetString(perfdata.FeatureArch, features.Arch)
	if len(features.BuildIDs) > 0 {
		w.SetBuildIDs(features.BuildIDs)
	}
	for _, feature := range []perfdata.Feature{perfdata.FeatureBPFProgInfo,
		perfdata.FeatureBPFBTF} {
		if r := x.mergeLists(files, feature); r != nil {
			w.SetFeatureFrom(feature, r)
		}
	}
	return w.Close()
}

// mergeLists joins features that have a u32 number of entries and the entries; nil if no file has
// the feature.
func (x *merger) mergeLists(files []sideFile, feature perfdata.Feature) io.Reader {
	var parts []io.Reader
	count := uint32(0)
	var head [4]byte
	o := decode.OrderOf(files[0].BigEndian)
	for _, f := range files {
		sec, ok := f.Features.Section(feature)
		if !ok || sec.Size < int64(len(head)) {
			continue
		}
		if n, _ := f.r.ReadAt(head[:], sec.Offset); n < len(head) {
			continue
		}
		count += o.Uint32(head[:])
		parts = append(parts, io.NewSectionReader(f.r, sec.Offset+int64(len(head)),
			sec.Size-int64(len(head))))
	}
	if len(parts) == 0 {
		return nil
	}
	o.PutUint32(head[:], count)
	return io.MultiReader(append([]io.Reader{bytes.NewReader(head[:])}, parts...)...)
}
