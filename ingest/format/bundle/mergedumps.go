package bundle

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"

	"symbolize/ingest/decode"
	"symbolize/ingest/format/rawdump"
)

// CompareCallers compares stacks by their frames of the given size, outermost first: the order of
// stacks in a dump.
func CompareCallers(a, b []byte, size int) int {
	for len(a) >= size && len(b) >= size {
		x, y := len(a)-size, len(b)-size
		if c := bytes.Compare(a[x:], b[y:]); c != 0 {
			return c
		}
		a, b = a[:x], b[:y]
	}
	return cmp.Compare(len(a), len(b))
}

// mergeSamples merges the stacks and counts listed in the manifests. Samples that a segment
// describes in another way than the last segment are left out, with a warning.
func (x *merger) mergeSamples(done map[string]bool) error {
	last := x.manifest.Samples
	x.manifest.Samples = nil
	for i := range last {
		want := last[i]
		want.Files = x.mergeFiles(want.Event)
		var runs sampleRuns
		for from, b := range x.from {
			if len(b.Manifest.Samples) == 0 {
				continue // it has only the side band
			}
			j := slices.IndexFunc(b.Manifest.Samples, func(s Samples) bool { return alike(&s, &want) })
			if j < 0 || !runs.open(b, from, &want) {
				x.warn("%s: samples of %q of a part of the recording cannot be read and are left out",
					x.name, want.Event)
			}
		}
		for _, name := range []string{want.Stacks, want.KernelStacks, want.Counts} {
			done[name] = true
		}
		if len(runs.list) == 0 {
			continue
		}
		if err := runs.merge(x, &want); err != nil {
			return err
		}
		x.manifest.Samples = append(x.manifest.Samples, want)
	}
	return nil
}

// alike reports whether a and b describe samples in the same way.
func alike(a, b *Samples) bool {
	return a.Event == b.Event && a.Unit == b.Unit && a.Period == b.Period && a.Stacks == b.Stacks &&
		a.KernelStacks == b.KernelStacks && a.Counts == b.Counts && a.Key == b.Key &&
		a.Value == b.Value && a.Weight == b.Weight
}

// The dumps of a sampleRun.
const (
	userRun = iota
	kernelRun
	countsRun
	numRuns
)

// sampleRun are the dumps of a segment.
type sampleRun struct {
	from    int
	dumps   [numRuns]*rawdump.Reader
	numbers [countsRun][]int32 // of stacks in the output, by their numbers here
}

type sampleRuns struct{ list []*sampleRun }

// open opens the dumps of a segment; it returns false if they cannot be read.
func (s *sampleRuns) open(b *Bundle, from int, m *Samples) (ok bool) {
	run := &sampleRun{from: from}
	for i, name := range []string{m.Stacks, m.KernelStacks, m.Counts} {
		r, size, err := b.Entry(name)
		if err != nil {
			return false
		}
		if run.dumps[i], err = rawdump.Open(name, r, size); err != nil {
			return false
		}
		h := &run.dumps[i].Header
		if h.KeySize == 0 || h.CPUs != 0 || i < countsRun && (h.KeySize != 4 ||
			h.ValueSize%uint32(h.FrameSize()) != 0 || h.ValueSize > rawdump.MaxTrimmedPair) ||
			i == countsRun && (h.KeySize > rawdump.MaxColumnPair/2 || h.ValueSize > rawdump.MaxColumnPair/2 ||
				h.ValueSize%8 != 0) {
			return false
		}
		if len(s.list) > 0 && !sameForm(h, &s.list[0].dumps[i].Header) {
			return false
		}
	}
	s.list = append(s.list, run)
	return true
}

// sameForm reports whether two dumps have pairs of the same form.
func sameForm(a, b *rawdump.Header) bool {
	return a.KeySize == b.KeySize && a.BigEndian == b.BigEndian && a.Flags == b.Flags &&
		a.Type == b.Type && (a.Type == stackTrace || a.ValueSize == b.ValueSize)
}

const stackTrace = 7 // BPF_MAP_TYPE_STACK_TRACE

func (s *sampleRuns) merge(x *merger, m *Samples) error {
	for kind, name := range []string{m.Stacks, m.KernelStacks} {
		err := x.addTemp(name, func(f *os.File) error { return s.writeStacks(x, kind, name, f) })
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	fields, err := parseKey(m.Key, s.list[0].dumps[countsRun].Header.KeySize)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Counts, err)
	}
	err = x.addTemp(m.Counts, func(f *os.File) error { return s.writeCounts(x, fields, m.Counts, f) })
	if err != nil {
		return fmt.Errorf("%s: %w", m.Counts, err)
	}
	return nil
}

// header returns the merged header of a kind of dumps.
func (s *sampleRuns) header(kind int) rawdump.Header {
	h := s.list[len(s.list)-1].dumps[kind].Header
	h.Lost, h.MaxEntries, h.Entries = nil, 0, rawdump.UnknownEntries
	for _, run := range s.list {
		d := &run.dumps[kind].Header
		if len(d.Lost) > 0 && h.Lost == nil {
			h.Lost = make(map[string]uint64)
		}
		for cause, n := range d.Lost {
			h.Lost[cause] += n
		}
		h.ValueSize, h.Depth = max(h.ValueSize, d.ValueSize), max(h.Depth, d.Depth)
		h.MaxEntries = max(h.MaxEntries, h.MaxEntries+d.MaxEntries)
	}
	return h
}

// mergedDump is a dump that gets its number of pairs when it is complete.
type mergedDump struct {
	name string // of the entry
	f    *os.File
	w    *rawdump.Writer
}

func newMergedDump(name string, f *os.File, h *rawdump.Header) (*mergedDump, error) {
	w, err := rawdump.NewWriter(f, h)
	return &mergedDump{name, f, w}, err
}

func (d *mergedDump) close(x *merger) error {
	if err := d.w.Close(); err != nil {
		return err
	}
	if x.to.merged == nil {
		x.to.merged = make(map[string]uint64)
	}
	x.to.merged[d.name] = d.w.Pairs()
	return d.w.WriteEntries(d.f)
}

// stackHead is the next stack of a run.
type stackHead struct {
	run    *sampleRun
	d      *rawdump.Reader
	frames []byte // without the padding
	ok     bool
}

// next reads the next stack; its key must be its number.
func (h *stackHead) next(kind int, x *merger) {
	key, value, ok := h.d.Next()
	n := len(h.run.numbers[kind])
	switch {
	case !ok && h.d.Err() != nil:
		x.warn("%s: %v", x.name, h.d.Err())
	case ok && (n >= math.MaxInt32 || int(order(h.d).Uint32(key)) != n):
		x.warn("%s: %s: stacks are not numbered 0, 1, 2 and so on", x.name, h.d.Name())
		ok = false
	}
	if h.ok = ok; !ok {
		return
	}
	size := h.d.Header.FrameSize()
	length := len(value)
	for length > 0 && value[length-1] == 0 {
		length--
	}
	h.frames = value[:min(len(value), (length+size-1)/size*size)]
}

func order(d *rawdump.Reader) decode.Order { return decode.OrderOf(d.Header.BigEndian) }

// writeStacks merges and numbers the stacks of a kind.
func (s *sampleRuns) writeStacks(x *merger, kind int, name string, f *os.File) error {
	h := s.header(kind)
	h.Packing = rawdump.Trimmed
	out, err := newMergedDump(name, f, &h)
	if err != nil {
		return err
	}
	defer func() {
		for _, run := range s.list {
			run.dumps[kind].Release()
		}
	}()
	heads := make([]*stackHead, len(s.list))
	for i, run := range s.list {
		heads[i] = &stackHead{run: run, d: run.dumps[kind]}
		heads[i].next(kind, x)
	}
	var key [4]byte
	value, last := make([]byte, h.ValueSize), []byte(nil)
	number := int32(-1)
	for {
		var least *stackHead
		for _, c := range heads {
			if c.ok && (least == nil || CompareCallers(c.frames, least.frames, h.FrameSize()) < 0) {
				least = c
			}
		}
		if least == nil {
			return out.close(x)
		}
		if number < 0 || !bytes.Equal(least.frames, last) {
			if number++; number == math.MaxInt32 {
				return fmt.Errorf("over the limit of %d stacks", math.MaxInt32)
			}
			last = append(last[:0], least.frames...)
			clear(value[copy(value, last):])
			order(least.d).PutUint32(key[:], uint32(number))
			if err := out.w.Add(key[:], value); err != nil {
				return err
			}
		}
		least.run.numbers[kind] = append(least.run.numbers[kind], number)
		least.next(kind, x)
	}
}

// countHead is the next count of a run; its key has the merged numbers.
type countHead struct {
	run        *sampleRun
	d          *rawdump.Reader
	key, value []byte
	ok         bool
}

func (h *countHead) next(x *merger, f *keyFields) {
	key, value, ok := h.d.Next()
	if h.ok = ok; !ok {
		if h.d.Err() != nil {
			x.warn("%s: %v", x.name, h.d.Err())
		}
		return
	}
	h.key, h.value = append(h.key[:0], key...), value
	h.renumber(x, &f.threadFields)
	if f.waker.user >= 0 {
		h.renumber(x, &f.waker)
	}
}

// renumber replaces the numbers of a thread's stacks and program.
func (h *countHead) renumber(x *merger, f *threadFields) {
	o := order(h.d)
	for kind, at := range []int{f.user, f.kernel} {
		id := int32(o.Uint32(h.key[at:]))
		if id < 0 {
			continue // an errno
		}
		number := int32(math.MaxInt32) // of lost stacks
		if int(id) < len(h.run.numbers[kind]) {
			number = h.run.numbers[kind][id]
		}
		o.PutUint32(h.key[at:], uint32(number))
	}
	if f.program >= 0 {
		k := programKey{h.run.from, int32(o.Uint32(h.key[f.pid:])), o.Uint32(h.key[f.program:])}
		if n, ok := x.programs[k]; ok {
			o.PutUint32(h.key[f.program:], n)
		}
	}
}

// writeCounts merges the counts, and adds up counts of equal keys.
func (s *sampleRuns) writeCounts(x *merger, f keyFields, name string, file *os.File) error {
	h := s.header(countsRun)
	h.Packing = rawdump.Columns
	out, err := newMergedDump(name, file, &h)
	if err != nil {
		return err
	}
	heads := make([]*countHead, len(s.list))
	for i, run := range s.list {
		heads[i] = &countHead{run: run, d: run.dumps[countsRun]}
		heads[i].next(x, &f)
	}
	var key, sum []byte
	for {
		var least *countHead
		for _, c := range heads {
			if c.ok && (least == nil || f.compare(c.key, least.key, order(c.d)) < 0) {
				least = c
			}
		}
		if least != nil && bytes.Equal(key, least.key) {
			addWords(sum, least.value, order(least.d))
			least.next(x, &f)
			continue
		}
		if len(key) > 0 {
			if err := out.w.Add(key, sum); err != nil {
				return err
			}
		}
		if least == nil {
			return out.close(x)
		}
		key, sum = append(key[:0], least.key...), append(sum[:0], least.value...)
		least.next(x, &f)
	}
}

// addWords adds the u64 words of value to sum.
func addWords(sum, value []byte, o binary.ByteOrder) {
	for at := 0; at+8 <= len(sum); at += 8 {
		o.PutUint64(sum[at:], o.Uint64(sum[at:])+o.Uint64(value[at:]))
	}
}
