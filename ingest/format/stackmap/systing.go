package stackmap

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"symbolize/ingest/files"
)

// systingVersion is the version of the export that is read.
const systingVersion = 1

func isSysting(text []byte) bool {
	for _, word := range []string{"{", `"systing_profile_export"`, ":"} {
		var ok bool
		if text, ok = bytes.CutPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte(word)); !ok {
			return false
		}
	}
	return true
}

// systingHeader is the first line.
type systingHeader struct {
	Version     int               `json:"systing_profile_export"`
	SampleEvent string            `json:"sample_event"`
	Period      uint64            `json:"sample_period"`
	EventTypes  map[string]string `json:"event_types"`
}

// systingThread is a thread of the export.
type systingThread struct {
	tid  int32
	name string
	upid int64
}

// systingReader holds the entries that later lines refer to, by the numbers of the export.
type systingReader struct {
	set     *Set
	limit   int // see maxReferred
	header  systingHeader
	pids    map[int64]int32
	threads map[int64]systingThread
	frames  map[int64]Frame
	stacks  map[int64][2]Part // kernel, user
	events  map[int64]uint16
}

// readSysting reads an export, gzipped or not.
func readSysting(set *Set, in *Input) error {
	r := in.reader()
	if head := in.head(2); len(head) == 2 && head[0] == 0x1f {
		z, err := files.Unpacker(files.Gzip, r, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", in.Name, err)
		}
		r = z
	}
	x := systingReader{set: set, limit: maxReferred, pids: make(map[int64]int32),
		threads: make(map[int64]systingThread), frames: make(map[int64]Frame),
		stacks: make(map[int64][2]Part), events: make(map[int64]uint16)}
	lines := newLineReader(in.Name, io.LimitReader(r, maxExport))
	if err := x.begin(lines); err != nil {
		return err
	}
	return x.records(lines)
}

// begin reads the first line.
func (x *systingReader) begin(lines *lineReader) error {
	line, _, ok := lines.next()
	if !ok {
		return cmp.Or(lines.finish(x.set), fmt.Errorf("%s: %w", lines.name, ErrNotStacks))
	}
	if err := json.Unmarshal(line, &x.header); err != nil {
		return fmt.Errorf("%s: header: %w", lines.name, err)
	}
	if v := x.header.Version; v != systingVersion {
		return fmt.Errorf("%s: version %d of the export, expected %d", lines.name, v,
			systingVersion)
	}
	return nil
}

// records reads all other lines.
func (x *systingReader) records(lines *lineReader) error {
	set := x.set
	set.Labels, set.Counted = Labels{PID: true, TID: true, Comm: true}, true
	set.Events = nil
	for line, whole := range lines.all() {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := x.record(line); err != nil {
			err = fmt.Errorf("%s: offset %#x: %w", lines.name, lines.start, err)
			switch {
			case errors.Is(err, errLarge):
				return fmt.Errorf("%w: the rest is not read", err)
			case !whole:
				return fmt.Errorf("%s: offset %#x: the export is cut off in a line", lines.name,
					lines.start)
			}
			set.warn(err)
		}
	}
	if len(set.Events) == 0 {
		set.Events = []Event{{Name: "samples", Unit: "count", Period: 1}}
	}
	return lines.finish(set)
}

// Limits of an export: unpacked bytes, and entries of one kind (frames, stacks, threads or
// processes).
const (
	maxExport   = 8 << 30
	maxReferred = 1 << 22
)

// errLarge ends the reading of an export with too many entries of one kind.
var errLarge = fmt.Errorf("more than %d frames, stacks, threads or processes", maxReferred)

// record decodes one line.
func (x *systingReader) record(line []byte) error {
	var fields []json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return err
	}
	var tag string
	if len(fields) == 0 || json.Unmarshal(fields[0], &tag) != nil {
		return fmt.Errorf("no record: %.40q", line)
	}
	want := map[string]int{"p": 4, "t": 5, "f": 3, "s": 3, "x": 5}[tag]
	if want == 0 {
		x.set.Skipped++ // of a later minor version
		return nil
	}
	if len(fields) < want {
		return fmt.Errorf("record %q has %d fields of %d", tag, len(fields), want)
	}
	if max(len(x.pids), len(x.threads), len(x.frames), len(x.stacks)) > x.limit {
		return errLarge
	}
	d := fieldReader{fields: fields}
	switch tag {
	case "p":
		x.pids[d.int(1)] = d.pid(2)
	case "t":
		x.threads[d.int(1)] = systingThread{tid: d.pid(2), name: d.text(3), upid: d.int(4)}
	case "f":
		x.frames[d.int(1)] = x.frame(d.text(2))
	case "s":
		var ids []int64
		d.decode(2, &ids)
		if d.err == nil {
			d.err = x.stack(d.int(1), ids)
		}
	case "x":
		return x.sample(&d)
	}
	return d.err
}

// fieldReader reads the fields of a record, with a sticky error.
type fieldReader struct {
	fields []json.RawMessage
	err    error
}

func (d *fieldReader) decode(i int, to any) {
	if err := json.Unmarshal(d.fields[i], to); err != nil && d.err == nil {
		d.err = fmt.Errorf("field %d: %w", i, err)
	}
}

func (d *fieldReader) int(i int) (v int64) {
	d.decode(i, &v) // null is 0
	return v
}

// text reads a string; null is "".
func (d *fieldReader) text(i int) (v string) {
	d.decode(i, &v)
	return v
}

func (d *fieldReader) pid(i int) int32 { return processID(d.int(i)) }

// stack splits a list of frames, leaf first, into kernel frames, which come first, and user
// frames.
func (x *systingReader) stack(id int64, frames []int64) error {
	var parts [2][]Frame
	for _, n := range frames {
		f, ok := x.frames[n]
		if !ok {
			return fmt.Errorf("stack %d: no frame %d before it", id, n)
		}
		side := 1
		if len(parts[1]) == 0 && x.inKernel(f) {
			side = 0
		}
		parts[side] = append(parts[side], f)
	}
	var out [2]Part
	for i := range parts {
		if len(parts[i]) > 0 {
			out[i] = x.set.add(parts[i])
		}
	}
	if len(frames) == 0 {
		out[1].Cause = NotTaken
	}
	x.stacks[id] = out
	return nil
}

func (x *systingReader) inKernel(f Frame) bool {
	switch f.Status {
	case IP:
		return f.Offset >= kernelHalf
	case Named:
		return x.set.Symbols[f.Ref].Kernel
	}
	return false
}

func (x *systingReader) sample(d *fieldReader) error {
	utid, stack, kind, n := d.int(1), d.int(2), d.int(3), d.int(4)
	if d.err != nil {
		return d.err
	}
	parts, ok := x.stacks[stack]
	if !ok || n <= 0 {
		return fmt.Errorf("sample of stack %d, %d times: no such stack", stack, n)
	}
	sm := Sample{Kernel: parts[0], User: parts[1], PID: -1, TID: -1, Count: uint64(n),
		Event: x.event(kind)}
	if t, ok := x.threads[utid]; ok {
		sm.TID, sm.Comm = t.tid, t.name
		if pid, ok := x.pids[t.upid]; ok {
			sm.PID = pid
		}
	}
	x.set.count(sm)
	return nil
}

// maxEvents bounds the events of one input.
const maxEvents = 256

// event numbers an event type: 1 is the sampling event, others count occurrences.
func (x *systingReader) event(kind int64) uint16 {
	if n, ok := x.events[kind]; ok {
		return n
	}
	e := Event{Name: x.header.EventTypes[strconv.FormatInt(kind, 10)], Unit: "count", Period: 1}
	const cpu = 1
	if kind == cpu && x.header.SampleEvent != "" {
		e.Name, e.Period = x.header.SampleEvent, max(1, x.header.Period)
		if e.Name == "cpu-clock" {
			e.Unit = "nanoseconds"
		}
	}
	if e.Name == "" {
		e.Name = "event " + strconv.FormatInt(kind, 10)
	}
	if len(x.set.Events) >= maxEvents {
		return maxEvents - 1
	}
	n := uint16(len(x.set.Events))
	x.set.Events = append(x.set.Events, e)
	x.events[kind] = n
	return n
}

// frame decodes the text of a frame (parse_frame in systing's src/analyze/flamegraph.rs):
// "func (object [file:line]) <0xPC>", "unknown ([buildid:HEX]) <0xOFF>",
// "buildid:HEX+0xOFF", "0xPC".
func (x *systingReader) frame(text string) Frame {
	if f, ok := addressFrame(text); ok && strings.HasPrefix(text, "0x") {
		return f
	}
	if id, ok := strings.CutPrefix(text, "buildid:"); ok {
		if id, offset, ok := strings.Cut(id, "+0x"); ok {
			if f, ok := x.set.buildIDFrame([]byte(id), offset); ok {
				return f
			}
		}
	}
	head, offset := text, ""
	var address Frame
	if i := strings.LastIndex(text, " <0x"); i >= 0 && strings.HasSuffix(text, ">") {
		if f, ok := addressFrame(text[i+2 : len(text)-1]); ok {
			head, offset, address = text[:i], text[i+4:len(text)-1], f
		}
	}
	name, object := head, ""
	if i := strings.LastIndex(head, " ("); i >= 0 && strings.HasSuffix(head, ")") {
		name, object = head[:i], head[i+2:len(head)-1]
		if j := strings.Index(object, " ["); j > 0 {
			object = object[:j] // file and line
		}
	}
	if name == "unknown" && address.Status == IP {
		if id, ok := strings.CutPrefix(object, "[buildid:"); ok {
			if f, ok := x.set.buildIDFrame([]byte(strings.TrimSuffix(id, "]")), offset); ok {
				return f
			}
		}
		if object == "[kernel]" || object == "" {
			return address
		}
	}
	sym := Symbol{Name: name, Object: object, Kernel: object == "[kernel]" || object == "vmlinux"}
	return Frame{Ref: x.set.symbol(sym), Status: Named}
}
