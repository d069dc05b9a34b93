package stackmap

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"symbolize/ingest/files"
	"symbolize/ingest/format/mapdump"
	"symbolize/ingest/format/rawdump"
	"symbolize/ingest/object/btf"
)

// Options describe inputs that are not self-describing.
type Options struct {
	Counts *Input // the map that counts the stacks; nil if there is none
	Kernel *Input // the map of kernel stacks, if it is not the map of the user stacks
	// Key holds the fields of the count map's key; if empty they come from BTF, and a key of 4
	// bytes is a stack ID.
	Key []Field
	// BTF has the types of the count map's keys and values: the kernel's BTF, by the IDs in a raw
	// dump, or the BTF of the program's object file; nil if there is none.
	BTF *btf.Types
	// Value is the field of a value with the count; nil for the whole value. Weight is the field
	// with the weight; nil for the period of the event.
	Value, Weight *Field
	// Depth is the number of frames in a value, 0 for all that fit.
	Depth     int
	Addresses bool // values of the Bare form are addresses, not build IDs
	// Packed is the size of the file that contained all inputs, which bounds the Set; 0 if the
	// inputs are files.
	Packed int64
}

// bare reports whether the options describe bare values.
func (o *Options) bare() bool { return o.Depth > 0 }

// size returns the size of the input files, which bounds the Set.
func (o *Options) size(in *Input) int64 {
	if o.Packed > 0 {
		return o.Packed
	}
	size := in.Size
	for _, more := range [...]*Input{o.Counts, o.Kernel} {
		if more != nil {
			size += more.Size
		}
	}
	return size
}

// Read reads stacks in any form, which Sniff detects. With an error it returns the whole stacks
// before it; the Set is nil if there are none.
func Read(in *Input, opts *Options) (*Set, error) {
	form := Sniff(in)
	if form == NoForm && opts.bare() {
		form = Bare
	}
	set := newSet(form)
	defer set.finish()
	set.bound(opts.size(in))
	var err error
	switch form {
	case Raw, Bpftool:
		err = readMaps(set, in, opts)
	case Bare:
		err = readBare(set, in, opts)
	case Bpftrace:
		err = readBpftrace(set, in)
	case Systing:
		err = readSysting(set, in)
	case Gadget:
		err = readGadget(set, in)
	case Memleak:
		err = readMemleak(set, in)
	default:
		return nil, fmt.Errorf("%s: %w", in.Name, ErrNotStacks)
	}
	if err != nil && len(set.Samples) == 0 {
		return nil, err
	}
	if form > Bare && opts.Counts != nil {
		set.warn(fmt.Errorf("%s: the counts are in the text; the count map is not used", in.Name))
	}
	return set, err
}

// readMaps reads a stack map, and its count map if there is one.
func readMaps(set *Set, in *Input, opts *Options) error {
	user, err := readTable(set, in, opts)
	if user == nil || errors.Is(err, ErrNotStacks) {
		return err
	}
	return countStacks(set, user, opts, err)
}

// Sampled holds the samples of one event: a stack map, and in Options the map that counts its
// stacks.
type Sampled struct {
	Event   Event
	Stacks  Input
	Options Options
}

// ReadSampled reads the samples of several events into one Set. With an error it returns the whole
// stacks before it; the Set is nil if there are none.
func ReadSampled(list []Sampled) (*Set, error) {
	set := newSet(Raw)
	defer set.finish()
	set.Events = nil
	var errs []error
	size := int64(0)
	for i := range list {
		x := &list[i]
		size = max(size, x.Options.size(&x.Stacks))
		set.bound(size)
		set.Events = append(set.Events, x.Event)
		errs = append(errs, readMaps(set, &x.Stacks, &x.Options))
	}
	err := errors.Join(errs...)
	if err != nil && len(set.Samples) == 0 {
		return nil, err
	}
	return set, err
}

// countStacks makes the samples of a stack map that was read with the given damage.
func countStacks(set *Set, user *table, opts *Options, damage error) error {
	kernel := user
	if opts.Kernel != nil {
		k, err := readTable(set, opts.Kernel, opts)
		if k == nil || errors.Is(err, ErrNotStacks) {
			return errors.Join(damage, err)
		}
		kernel, damage = k, errors.Join(damage, err)
	}
	if opts.Counts == nil {
		countEach(set, user)
		if kernel != user {
			countEach(set, kernel)
		}
		return damage
	}
	return errors.Join(damage, countByMap(set, user, kernel, opts))
}

// countEach counts each stack of a map once.
func countEach(set *Set, t *table) {
	for i := range t.list {
		set.addUnclassified(t.list[i].part, Sample{PID: -1, TID: -1, Count: 1})
	}
}

// countByMap makes samples with the counts and labels of the count map.
func countByMap(set *Set, user, kernel *table, opts *Options) error {
	d, err := mapdump.Open(opts.Counts.Name, opts.Counts.R, opts.Counts.Size)
	if err != nil {
		return err
	}
	fields, value, err := countFields(opts, d)
	if err != nil {
		return fmt.Errorf("%s: %w", opts.Counts.Name, err)
	}
	c := counter{set: set, user: user, kernel: kernel, value: value, weight: opts.Weight}
	big := user.layout.big
	switch d.Form {
	case mapdump.Raw:
		big = d.Header.BigEndian
	case mapdump.Text:
		big = false
	}
	c.key = newKeyDecoder(fields, big)
	set.Labels, set.Counted = set.Labels.with(c.key.labels()), true
	n := min(opts.Counts.pairs(&d.Header), set.maxSamples-len(set.Samples))
	set.Samples = slices.Grow(set.Samples, n)
	for {
		key, values, ok := d.Next()
		if !ok {
			break
		}
		if err := c.add(key, values); err != nil {
			return fmt.Errorf("%s: %w", opts.Counts.Name, err)
		}
	}
	for i := range user.list {
		if !user.list[i].counted {
			set.Unused++
		}
	}
	addLosses(set, opts.Counts.Name, d.Header.Lost)
	for _, n := range d.Header.Lost {
		set.LostSamples = sum(set.LostSamples, n)
	}
	return d.Err()
}

// countFields locates the fields in keys and values of a count map: by the options, else by what
// bpftool printed.
func countFields(opts *Options, dump *mapdump.Dump) (key []Field, value *Field, err error) {
	h := &dump.Header
	key, value = opts.Key, opts.Value
	switch {
	case dump.Form == mapdump.Text && (len(key) > 0 || value != nil):
		return nil, nil, errors.New("a place in bytes is given, and bpftool printed names in place of bytes: " +
			"omit it, or dump with `bpftool -j map dump`")
	case dump.Form == mapdump.Text: // its bytes are not those of the map
		d, err := describe(dump.Types, h)
		if err != nil {
			return nil, nil, err
		}
		return d.key, cmp.Or(d.value, &Field{Size: 8}), nil
	case len(key) == 0 && opts.BTF != nil:
		d, err := describe(opts.BTF, h)
		switch {
		case err == nil:
			key, value = d.key, cmp.Or(value, d.value)
		case h.KeySize != intSize:
			return nil, nil, err
		}
	case len(key) == 0 && dump.Form == mapdump.JSON:
		in := mapdump.Source{R: opts.Counts.R, Size: opts.Counts.Size}
		if x, ok := mapdump.Infer([]mapdump.Source{in}, int(h.KeySize), int(h.ValueSize)); ok {
			known := *h
			known.KeyType, known.ValueType = uint32(x.Key), uint32(x.Value)
			if d, err := describe(x.Types, &known); err == nil {
				key, value = d.key, cmp.Or(value, d.value)
			}
		}
	}
	if len(key) == 0 && h.KeySize == intSize {
		key = []Field{{Kind: StackID, Size: intSize}} // the only possibility
	}
	if d := (described{key: key}); h.KeySize > 0 && !d.hasStack() {
		return nil, nil, fmt.Errorf("%w: it has %d bytes", ErrKey, h.KeySize)
	}
	return key, value, nil
}

// counter makes samples of the pairs of a count map.
type counter struct {
	set          *Set
	user, kernel *table
	key          keyDecoder
	value        *Field
	weight       *Field // nil: by the event's period
}

func (c *counter) add(key []byte, values [][]byte) error {
	if len(key) < c.key.end {
		return fmt.Errorf("%w: a key has %d bytes, the fields end at %d", ErrKey, len(key),
			c.key.end)
	}
	sm := c.key.sample(c.set, key)
	for _, v := range values {
		n, err := c.number(c.value, v)
		if err != nil {
			return err
		}
		sm.Count = sum(sm.Count, n)
		if c.weight != nil {
			if n, err = c.number(c.weight, v); err != nil {
				return err
			}
			sm.Weight = sum(sm.Weight, n)
		}
	}
	if sm.Count == 0 {
		return nil
	}
	part := func(t *table, kind FieldKind) (p Part, ok bool) {
		field := c.key.field(kind, key)
		if field == nil {
			return p, false
		}
		return t.part(field, c.key.big), true
	}
	if p, ok := part(c.user, StackID); ok {
		c.set.addUnclassified(p, sm)
		return nil
	}
	sm.User, _ = part(c.user, UserStackID)
	sm.Kernel, _ = part(c.kernel, KernelStackID)
	if sm.User.Cause == Absent && sm.Kernel.Cause == Absent {
		sm.User.Cause = NotTaken
	}
	if w, ok := c.waker(key); ok {
		sm.Waker = c.set.waker(w)
	}
	c.set.count(sm)
	return nil
}

// number reads a field of a value; nil for the whole value.
func (c *counter) number(f *Field, v []byte) (uint64, error) {
	if f == nil {
		if len(v) != 4 && len(v) != 8 {
			return 0, fmt.Errorf("values have %d bytes: the offset of the count in them is needed",
				len(v))
		}
		return unsigned(v, c.key.big), nil
	}
	if len(v) < f.Offset+f.Size {
		return 0, fmt.Errorf("a value has %d bytes, a field ends at %d", len(v), f.Offset+f.Size)
	}
	return unsigned(v[f.Offset:f.Offset+f.Size], c.key.big), nil
}

// readBare reads concatenated values.
func readBare(set *Set, in *Input, opts *Options) error {
	size := frameSize
	if opts.Addresses {
		size = addressSize
	}
	length := opts.Depth * size
	if length > maxValue {
		return fmt.Errorf("%s: values of %d bytes hold no stack", in.Name, length)
	}
	var parts []Part
	err := readValues(set, in, layout{buildID: !opts.Addresses, depth: opts.Depth}, length,
		func(_ stackID, p Part) {
			if p.Cause != NotTaken { // else it is a free bucket
				parts = append(parts, p)
			}
		})
	for _, p := range parts {
		set.addUnclassified(p, Sample{PID: -1, TID: -1, Count: 1})
	}
	return err
}

// readValues reads values of stride bytes.
func readValues(set *Set, in *Input, l layout, stride int, put func(stackID, Part)) error {
	known := !l.buildID
	frames := newFrameDecoder(l, set, put)
	defer func() { frames.finish() }()
	buf := make([]byte, stride)
	for at := int64(0); at < in.Size; at += int64(stride) {
		if in.Size-at < int64(stride) {
			return fmt.Errorf("%s: offset %#x: the last value is cut off: %d of %d bytes", in.Name,
				at, in.Size-at, stride)
		}
		if n, err := in.R.ReadAt(buf, at); n < stride {
			return fmt.Errorf("%s: offset %#x: %w", in.Name, at, err)
		}
		if guess := l; !known && guess.guess(buf) {
			if !guess.buildID {
				return fmt.Errorf(
					"%s: offset %#x: %w: the first word is not a status; are they addresses?",
					in.Name, at, ErrNotStacks)
			}
			if known = true; guess.big != l.big {
				frames.finish()
				l.big = guess.big
				frames = newFrameDecoder(l, set, put)
			}
		}
		frames.add(stackID{}, buf)
	}
	return nil
}

// sniffBytes is how many bytes of a file are used to detect its form: a script may print much
// before its first stack.
const sniffBytes = 64 << 10

// Sniff detects the form of stacks by the first bytes of a file; NoForm for other files, and for
// the Bare form, which has no magic number.
func Sniff(in *Input) Form {
	head := in.head(sniffBytes)
	if rawdump.Is(head) {
		return Raw
	}
	if files.PackingOf(head) == files.Gzip {
		head = gunzipHead(head)
		if isSysting(head) {
			return Systing
		}
		return NoForm
	}
	text := bytes.TrimLeft(head, " \t\r\n")
	switch {
	case isSysting(text):
		return Systing
	case isMemleak(text):
		return Memleak
	case isBpftraceJSON(text):
		return Bpftrace
	case isGadget(text):
		return Gadget
	case mapdump.Sniff(text) != mapdump.NoForm:
		return Bpftool
	case isBpftrace(text):
		return Bpftrace
	}
	return NoForm
}

// gunzipHead unpacks the beginning of a gzipped file.
func gunzipHead(packed []byte) []byte {
	z, err := files.Unpacker(files.Gzip, bytes.NewReader(packed), 0)
	if err != nil {
		return nil
	}
	head := make([]byte, 512)
	n, _ := io.ReadFull(z, head)
	return head[:n]
}
