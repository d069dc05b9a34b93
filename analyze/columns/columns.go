// Package columns writes named profiles as Parquet files, for queries in SQL.
//
// A file has one row for all samples of an event with one stack and equal labels. Schema "1", which
// the file's metadata names under "symbolize.schema", has these columns; columns of schema 1 keep
// their meaning, others may be added:
//
//	event, unit    string; unit is of value: nanoseconds, count, bytes …
//	samples        int64, number of samples
//	value          int64, sum of their periods
//	comm           string, null if unknown
//	pid, tid, cpu  int32, null if the profile does not keep them
//	host           string, null if unknown or if several hosts were merged
//	start          timestamp of the first sample, microseconds UTC, null likewise
//	KEY            string: one column for each other label of the profile's samples, and for each
//	               of Options.Labels; null if a sample has none. A key that is the name of another
//	               column is written as label.KEY
//	stack          list from the innermost frame of
//	  function     string, demangled; [libc.so.6] of frames without a name
//	  system_name  string, as in the symbol table; null without a name
//	  file         string, null if unknown
//	  line         int32, null if unknown
//	  object       string, path of the file of the code as recorded
//	  build_id     string, hexadecimal, null if unknown
//	  inlined      boolean, whether the call was inlined
//	  reason       string: why a frame has no name; null with a name
//
// Further metadata: "symbolize.captures" (paths, a JSON list) and "symbolize.lost", a JSON object of
// what the captures lost: see Lost. Format: parquet-format 2.10, pages compressed by zstd.
package columns

import (
	"cmp"
	"context"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"symbolize/analyze/demangle"
	"symbolize/ingest"
	"symbolize/ingest/files"
	"symbolize/ingest/texts"
)

// SchemaVersion is the version of the columns.
const SchemaVersion = "1"

// The keys of the file's metadata.
const (
	SchemaKey   = "symbolize.schema"
	CapturesKey = "symbolize.captures"
	LostKey     = "symbolize.lost"
)

// Label is a column with one value in all rows.
type Label struct{ Key, Value string }

// Options are for Write.
type Options struct {
	Demangler *demangle.Demangler // nil prints whole names
	Labels    []Label             // of all samples, as the keys of a group of captures
}

// Lost counts what captures lost, in samples unless noted.
type Lost struct {
	Lost        uint64 `json:"lost"` // records that the recorder reports as lost
	Throttled   uint64 `json:"throttled"`
	CutChains   uint64 `json:"cut_chains"`
	BadRecords  uint64 `json:"bad_records"` // records
	UnknownIDs  uint64 `json:"unknown_ids"`
	FilteredOut uint64 `json:"filtered_out"`
}

// batchRows is how many rows are encoded at a time, and rowGroupFrames how many frames a row group
// has at least, except the last: they bound memory.
const batchRows, rowGroupFrames = 1 << 8, 1 << 20

// Write writes a named profile in the order of its samples, with columns encoded in parallel. The
// same profile gives the same bytes.
func Write(w io.Writer, p *ingest.Profile, o Options) error {
	return write(w, p, o, batchRows, rowGroupFrames)
}

func write(w io.Writer, p *ingest.Profile, o Options, batchRows, rowGroupFrames int) error {
	if o.Demangler == nil {
		o.Demangler = demangle.New(demangle.Full)
	}
	o.Demangler.Warm(p)
	schema, list := newColumns(p, o)
	metadata, err := metadata(p)
	if err != nil {
		return err
	}
	out := parquet.NewGenericWriter[any](w, append(metadata, schema, parquet.Compression(&parquet.Zstd),
		parquet.CreatedBy("symbolize", SchemaVersion, ""))...)
	columns := out.ColumnWriters()
	frames := 0
	for rows := range slices.Chunk(p.Samples, batchRows) {
		err := files.Each(context.Background(), 0, len(list), func(_ context.Context, i int) error {
			c := list[i]
			c.values = c.values[:0]
			for k := range rows {
				c.add(p, &rows[k])
			}
			_, err := columns[c.number].WriteRowValues(c.values)
			return err
		})
		if err != nil {
			return err
		}
		if frames += len(list[0].values); frames >= rowGroupFrames {
			frames = 0
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
	return out.Close()
}

// metadata is the file's metadata.
func metadata(p *ingest.Profile) (list []parquet.WriterOption, err error) {
	add := func(key string, v any) {
		var b strings.Builder
		err = cmp.Or(err, texts.NewJSONEncoder(&b).Encode(v))
		list = append(list, parquet.KeyValueMetadata(key, strings.TrimSpace(b.String())))
	}
	s := &p.Stats
	add(CapturesKey, append([]string{}, p.Meta.Captures...))
	add(LostKey, Lost{s.Lost, s.Throttled, s.CutChains, s.BadRecords, s.UnknownIDs, s.FilteredOut})
	return append(list, parquet.KeyValueMetadata(SchemaKey, SchemaVersion)), err
}

// column makes the values of one column: of samples or, if ofFrame is set, of the frames of their
// stacks. Functions return null for none.
type column struct {
	number   int
	optional bool
	ofSample func(*ingest.Sample) parquet.Value
	ofFrame  func(place) parquet.Value
	values   []parquet.Value // of the rows that are written next
}

// place is a frame of a stack.
type place struct {
	object ingest.ObjectID
	frame  *ingest.Frame // nil if there is no name
	reason ingest.Reason
}

// add adds the values of a row.
func (c *column) add(p *ingest.Profile, s *ingest.Sample) {
	if c.ofFrame == nil {
		c.append(c.ofSample(s), 0, 0)
		return
	}
	first := len(c.values)
	frame := func(at place) { c.append(c.ofFrame(at), min(len(c.values)-first, 1), 1) }
	for l := range p.Frames(s.Stack) {
		at := place{object: p.Locations[l].Object, reason: ingest.NotIndexed}
		var frames []ingest.Frame
		if p.Names != nil {
			frames, at.reason = p.Names.At(l), p.Names.Reasons[l]
		}
		for i := range frames {
			at.frame = &frames[i]
			frame(at)
		}
		if len(frames) == 0 {
			frame(at)
		}
	}
	if len(c.values) == first {
		c.values = append(c.values, parquet.NullValue().Level(0, 0, c.number))
	}
}

// append adds a value of a level of repetition; required is the level of columns that are not
// optional.
func (c *column) append(v parquet.Value, repetition, required int) {
	if c.optional && !v.IsNull() {
		required++
	}
	c.values = append(c.values, v.Level(repetition, required, c.number))
}

// newColumns makes the schema of a profile and its columns, of which the first one is of frames.
func newColumns(p *ingest.Profile, o Options) (*parquet.Schema, []*column) {
	ofSamples, ofFrames := sampleColumns(p, o), frameColumns(p, o)
	group, element := parquet.Group{}, parquet.Group{}
	for name, c := range ofSamples {
		group[name] = c.Node
	}
	for name, c := range ofFrames {
		element[name] = c.Node
	}
	group[stackColumn] = parquet.List(element)
	schema := parquet.NewSchema("profile", group)
	var list []*column
	add := func(c columnOf, path ...string) {
		leaf, _ := schema.Lookup(path...)
		c.number, c.optional = leaf.ColumnIndex, c.Node.Optional()
		list = append(list, &c.column)
	}
	for _, name := range slices.Sorted(maps.Keys(ofFrames)) {
		add(ofFrames[name], stackColumn, "list", "element", name)
	}
	for _, name := range slices.Sorted(maps.Keys(ofSamples)) {
		add(ofSamples[name], name)
	}
	return schema, list
}

// columnOf is a column with its type.
type columnOf struct {
	parquet.Node
	column
}

// text is the type of texts, and maybe of texts that may be null.
func text() parquet.Node { return parquet.Encoded(parquet.String(), &parquet.RLEDictionary) }

func maybe() parquet.Node { return parquet.Optional(text()) }

// stackColumn is the column of the frames.
const stackColumn = "stack"

// set is a set of columns by name.
type set map[string]columnOf

// sample adds a column of samples.
func (c set) sample(name string, n parquet.Node, value func(s *ingest.Sample) parquet.Value) {
	c[name] = columnOf{n, column{ofSample: value}}
}

// constant adds a column with the same value in all rows.
func (c set) constant(name string, n parquet.Node, v parquet.Value) {
	c.sample(name, n, func(*ingest.Sample) parquet.Value { return v })
}

// number adds a column of numbers that are negative if they are unknown.
func (c set) number(name string, of func(s *ingest.Sample) int32) {
	c.sample(name, parquet.Optional(parquet.Int(32)), func(s *ingest.Sample) parquet.Value {
		if n := of(s); n >= 0 {
			return parquet.Int32Value(n)
		}
		return parquet.NullValue()
	})
}

// free returns the name of a label's column.
func (c set) free(key string) string {
	name := texts.Printable(key)
	for _, used := c[name]; used || name == stackColumn; _, used = c[name] {
		name = "label." + name
	}
	return name
}

// sampleColumns returns the columns of samples.
func sampleColumns(p *ingest.Profile, o Options) set {
	c := make(set)
	names := values(p.Events, func(e ingest.Event) parquet.Value { return stringValue(e.Name) })
	units := values(p.Events, func(e ingest.Event) parquet.Value { return stringValue(e.Unit) })
	comms := values(p.Strings, textValue)
	c.sample("event", text(), func(s *ingest.Sample) parquet.Value { return names[s.Event] })
	c.sample("unit", text(), func(s *ingest.Sample) parquet.Value { return units[s.Event] })
	c.sample("samples", parquet.Int(64), func(s *ingest.Sample) parquet.Value {
		return parquet.Int64Value(int64(s.Count))
	})
	c.sample("value", parquet.Int(64), func(s *ingest.Sample) parquet.Value {
		return parquet.Int64Value(int64(s.Weight))
	})
	c.sample("comm", maybe(), func(s *ingest.Sample) parquet.Value { return comms[s.Comm] })
	c.number("pid", func(s *ingest.Sample) int32 { return s.PID })
	c.number("tid", func(s *ingest.Sample) int32 { return s.TID })
	c.number("cpu", func(s *ingest.Sample) int32 { return s.CPU })
	c.constant("host", maybe(), textValue(p.Meta.Host))
	start := parquet.NullValue()
	if ns := p.Meta.StartNanos; ns != 0 {
		start = parquet.Int64Value(ns / int64(time.Microsecond))
	}
	c.constant("start", parquet.Optional(parquet.Timestamp(parquet.Microsecond)), start)
	of := make(map[string]bool)
	for _, l := range o.Labels {
		of[l.Key] = true
		c.constant(c.free(l.Key), maybe(), textValue(l.Value))
	}
	for _, key := range tagKeys(p) {
		if !of[key] {
			c.sample(c.free(key), maybe(), func(s *ingest.Sample) parquet.Value {
				return textValue(p.Tag(s, key))
			})
		}
	}
	return c
}

// values makes the values of the items of a table once, not for each row.
func values[T any](items []T, value func(T) parquet.Value) []parquet.Value {
	list := make([]parquet.Value, len(items))
	for i := range items {
		list[i] = value(items[i])
	}
	return list
}

// frame adds a column of frames.
func (c set) frame(name string, n parquet.Node, value func(place) parquet.Value) {
	c[name] = columnOf{n, column{ofFrame: value}}
}

// function adds a column of functions; unnamed is its value for frames without a name, by object.
func (c set) function(name string, n parquet.Node, p *ingest.Profile,
	of func(ingest.Function) parquet.Value, unnamed []parquet.Value) {
	var list []parquet.Value
	if p.Names != nil {
		list = values(p.Names.Functions, of)
	}
	c.frame(name, n, func(at place) parquet.Value {
		if at.frame == nil {
			return unnamed[at.object]
		}
		return list[at.frame.Func]
	})
}

// frameColumns returns the columns of frames.
func frameColumns(p *ingest.Profile, o Options) set {
	c := make(set)
	object := func(of func(o *ingest.Object) parquet.Value) []parquet.Value {
		return values(p.Objects, func(o ingest.Object) parquet.Value { return of(&o) })
	}
	none := make([]parquet.Value, len(p.Objects))
	c.function("function", text(), p, func(f ingest.Function) parquet.Value {
		return stringValue(o.Demangler.Name(f.SystemName))
	}, object(func(o *ingest.Object) parquet.Value {
		return stringValue("[" + ingest.ShortName(o) + "]")
	}))
	c.function("system_name", maybe(), p, func(f ingest.Function) parquet.Value {
		return textValue(f.SystemName)
	}, none)
	c.function("file", maybe(), p, func(f ingest.Function) parquet.Value {
		return textValue(f.File)
	}, none)
	c.frame("line", parquet.Optional(parquet.Int(32)), func(at place) parquet.Value {
		if at.frame == nil || at.frame.Line <= 0 {
			return parquet.NullValue()
		}
		return parquet.Int32Value(at.frame.Line)
	})
	paths := object(func(o *ingest.Object) parquet.Value { return stringValue(o.File.Path) })
	ids := object(func(o *ingest.Object) parquet.Value { return textValue(o.ID.String()) })
	c.frame("object", text(), func(at place) parquet.Value { return paths[at.object] })
	c.frame("build_id", maybe(), func(at place) parquet.Value { return ids[at.object] })
	c.frame("inlined", parquet.Leaf(parquet.BooleanType), func(at place) parquet.Value {
		return parquet.BooleanValue(at.frame != nil && at.frame.Inlined)
	})
	var reasons [math.MaxUint8 + 1]parquet.Value
	for r := range reasons {
		if reason := ingest.Reason(r); reason != ingest.ReasonNone {
			reasons[r] = stringValue(reason.String())
		}
	}
	c.frame("reason", maybe(), func(at place) parquet.Value { return reasons[at.reason] })
	return c
}

// stringValue is a printable text.
func stringValue(s string) parquet.Value { return parquet.ByteArrayValue([]byte(texts.Printable(s))) }

// textValue is a printable text, or null if it is empty.
func textValue(s string) parquet.Value {
	if s == "" {
		return parquet.NullValue()
	}
	return stringValue(s)
}

// tagKeys returns the keys of the tags of all samples, sorted.
func tagKeys(p *ingest.Profile) []string {
	keys, seen := make(map[string]bool), make(map[ingest.StringID]bool)
	for i := range p.Samples {
		s := &p.Samples[i]
		if s.Tags == 0 || seen[s.Tags] {
			continue
		}
		seen[s.Tags] = true
		for t := range p.AllTags(s) {
			keys[t.Key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}
