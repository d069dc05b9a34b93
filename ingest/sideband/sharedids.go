package sideband

import (
	"fmt"
	"slices"
	"strings"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/format/perfdata"
)

// refuteModuleIDs takes away recorded build IDs that several modules have, or a module and the
// kernel: perf from 5.12 until March 2026 gives all modules that were there before the recording
// the ID of the first (perf_event__synthesize_modules writes them from one buffer), and lists
// those IDs in the BUILD_ID feature. It is called before bundles add the IDs that they know.
func (sb *State) refuteModuleIDs() {
	owner := make(map[buildid.Key]string) // the name of a module; "" for several
	claimed := func(id buildid.ID, name string) {
		if known, ok := owner[id.Key()]; ok && known != name {
			name = ""
		}
		owner[id.Key()] = name
	}
	for i := range sb.Objects.List {
		if o := &sb.Objects.List[i]; !o.ID.IsZero() &&
			(o.Kind == ingest.Kernel || o.Kind == ingest.Module) {
			claimed(o.ID, o.File.Path)
		}
	}
	for i := range sb.buildIDs {
		if e := &sb.buildIDs[i]; listedModule(e) != "" && !e.ID.IsZero() {
			claimed(e.ID, listedModule(e))
		}
	}
	shared := func(id buildid.ID) bool {
		name, ok := owner[id.Key()]
		return ok && name == ""
	}
	listed := make(map[string]bool)
	sb.buildIDs = slices.DeleteFunc(slices.Clone(sb.buildIDs), func(e perfdata.BuildIDEntry) bool {
		name := listedModule(&e)
		refuted := name != "" && shared(e.ID)
		listed[name] = listed[name] || refuted
		return refuted
	})
	for i := range sb.Objects.List {
		if o := &sb.Objects.List[i]; o.Kind == ingest.Module &&
			(shared(o.ID) || o.ID.IsZero() && listed[o.File.Path]) {
			o.ID, o.IDSource, o.Reason = buildid.ID{}, ingest.IDNone, ingest.Ambiguous
			sb.Records.refutedModules++
		}
	}
}

// listedModule returns the display name of the module that an entry of the BUILD_ID feature is of;
// "" if it is of none.
func listedModule(e *perfdata.BuildIDEntry) string {
	base := ingest.BaseName(e.Filename)
	_, bracketed := ingest.Unbracket(base)
	switch {
	case e.PID > 0, strings.HasPrefix(base, ingest.KernelMapName), base == "[kernel]",
		strings.HasPrefix(base, "[vdso"), strings.HasPrefix(base, "[guest."):
		return ""
	case strings.Contains(base, ".ko"), bracketed && e.CPUMode == perfdata.CPUModeKernel:
		return moduleName(base)
	}
	return ""
}

// refuteFileIDs takes away build IDs that files of different content have: of one file, all
// mappings of code begin at the same offsets. It is called when the times of mappings are known.
func (sb *State) refuteFileIDs() {
	x := NewIdentifier(sb, ObjectQuery{}, nil)
	contents := make(map[buildid.Key][]content)
	ids := make([]buildid.ID, len(sb.Objects.List))
	for i := range sb.Objects.List {
		o := &sb.Objects.List[i]
		if o.Kind != ingest.ELF || len(o.Segments) == 0 {
			continue
		}
		if ids[i] = o.ID; ids[i].IsZero() {
			ids[i], _ = x.file(&o.File)
		}
		if !ids[i].IsZero() {
			key := ids[i].Key()
			contents[key] = addContent(contents[key], sb.contentOf(uint32(i)))
		}
	}
	refuted := func(id buildid.ID) bool { return len(contents[id.Key()]) > 1 }
	for i := range sb.Objects.List {
		if o := &sb.Objects.List[i]; refuted(ids[i]) {
			o.ID, o.IDSource, o.Reason = buildid.ID{}, ingest.IDNone, ingest.Ambiguous
		}
	}
	sb.buildIDs = slices.DeleteFunc(slices.Clone(sb.buildIDs), func(e perfdata.BuildIDEntry) bool {
		return e.CPUMode != perfdata.CPUModeKernel && refuted(e.ID)
	})
}

// comparedSegments bounds the segments by which contents are compared: files have one or two.
const comparedSegments = 16

// content is the code that was mapped of a file. Mappings from before the recording (listed, as
// the file's segments are) and those seen when they were made (noted, up to the end of all segments
// in old files) can have other lengths.
type content struct {
	segments      []ingest.SegmentRef
	listed, noted bool
}

func (sb *State) contentOf(object uint32) content {
	span := sb.Objects.mappedAt(object)
	list := sb.Objects.List[object].Segments
	return content{segments: slices.Clone(list[:min(len(list), comparedSegments)]),
		listed: span.first == 0, noted: span.last > 0}
}

// same reports whether two contents can be of one file: if they have a segment in common.
func (c *content) same(o *content) bool {
	alike := c.listed == o.listed && c.noted == o.noted
	return slices.ContainsFunc(c.segments, func(s ingest.SegmentRef) bool {
		return slices.ContainsFunc(o.segments, func(t ingest.SegmentRef) bool {
			return s.Offset == t.Offset && (!alike || s.Len == t.Len)
		})
	})
}

// addContent adds a content to those that differ.
func addContent(list []content, c content) []content {
	for i := range list {
		if !list[i].same(&c) {
			continue
		}
		known := &list[i]
		for _, s := range c.segments {
			if len(known.segments) < comparedSegments && !slices.Contains(known.segments, s) {
				known.segments = append(known.segments, s)
			}
		}
		known.listed, known.noted = known.listed || c.listed, known.noted || c.noted
		return list
	}
	if len(list) > 1 {
		return list // they differ already
	}
	return append(list, c)
}

// RefutedWarning is the warning about modules and files with samples whose recorded build IDs prove
// nothing; false if there are none.
func (x *Identifier) RefutedWarning() (w ingest.Warning, ok bool) {
	slices.Sort(x.refuted)
	names := slices.Compact(x.refuted)
	switch n := x.sb.Records.refutedModules; {
	case len(names) == 0:
		return w, false
	case n > 0:
		w.Text = fmt.Sprintf("%d kernel modules have a build ID in the records that another one has, "+
			"too: it proves nothing, and %d modules and files with samples have no other", n, len(names))
	default:
		w.Text = fmt.Sprintf("%d files with samples, %s among them, have a build ID in the records "+
			"that a file of other content has, too: it proves nothing", len(names),
			ingest.Printable(names[0]))
	}
	return w, true
}
