package resolve

import (
	"fmt"
	"slices"
	"strings"

	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/object/symlist"
	"symbolize/ingest/texts"
	"symbolize/store"
)

// conflict checks whether files with the same build ID contradict one another about the addresses
// just joined: an edited file, or two builds linked with one ID. Differences at other addresses do
// not affect the profile.
func (w *shardNamer) conflict(j *join, s *shard) {
	src := &j.p.Objects[s.object.id]
	if other, ok := s.object.otherPlace(j); ok {
		s.conflict(src, fmt.Sprintf("their segments differ (%s)", other))
		return
	}
	if how := w.finder.Contradiction(w.addrs); how != "" {
		s.conflict(src, how)
	}
}

// Contradiction compares the answers of files with one build ID to the addresses of the last Join:
// it returns the first difference in words, "alpha of /old/x, gamma of /new/x", or "". A file that
// names fewer addresses is no contradiction. Objects with one source of each kind cost nothing,
// except stripped files with debug information: their unwind table is compared too.
func (f *Finder) Contradiction(addrs []addr.Addr) string {
	m := f.manifest
	for i := 1; i < len(m.Sources); i++ {
		if k := m.Sources[i].Kind; !m.Rivals(i) || k.Fallback() {
			continue // stubs, and bounds of functions, which separate debug files have others of
		}
		first := i - 1
		for m.Rivals(first) {
			first--
		}
		if a, b, ok := contradict(f.view, m, first, i, addrs); ok {
			return texts.Printable(fmt.Sprintf("%s of %s, %s of %s", a, m.Sources[first].Path, b,
				m.Sources[i].Path))
		}
	}
	return f.moved(addrs)
}

// Limits for functions with different bounds in the unwind table of a runtime file and debug
// information with the same build ID: this many, and this percentage, prove another build. Labels
// in assembly code are inside the ranges of the unwind table, about 1 % of the functions of glibc.
const (
	movedFunctions = 3
	movedShare     = 50
)

// moved compares where functions begin, by the sources that name the addresses of the last Join and
// by the unwind table of a stripped runtime file.
func (f *Finder) moved(addrs []addr.Addr) string {
	m := f.manifest
	table := slices.IndexFunc(m.Sources, func(s store.SourceInfo) bool {
		return s.Kind.Nameless()
	})
	if best := m.Quality(); table < 0 || !best.Whole() || best.List() {
		return ""
	}
	bounds := NewFinder(f.view, m)
	bounds.textsLater, bounds.only = true, table+1
	bounds.Join(addrs)
	other, starts := 0, make(map[addr.Addr]bool) // functions by the unwind table
	for i := range addrs {
		p, b := f.Place(i), bounds.Place(i)
		name, start := f.Function(p, SymbolNames)
		if name == 0 || b.Symbol == 0 || starts[b.SymbolStart] || store.CompareKinds(p.SymbolKind, store.Dynsym) >= 0 {
			continue
		}
		starts[b.SymbolStart] = true
		if start != b.SymbolStart {
			other++
		}
	}
	if other < movedFunctions || 100*other < movedShare*len(starts) {
		return ""
	}
	return fmt.Sprintf("%d of %d functions begin elsewhere by the unwind table of %s", other,
		len(starts), texts.Printable(m.Sources[table].Path))
}

// conflict adds the warning.
func (s *shard) conflict(src *ingest.Object, how string) {
	s.warnings = append(s.warnings, ingest.Warning{
		Text: texts.Printable(ingest.ShortName(src)+": ") + ConflictText(s.object.manifest, how),
		Hint: ConflictHint})
}

// ConflictHint finds the files of ConflictText.
const ConflictHint = "`symbolize store show ID` lists the files; `--store DIR` takes another store"

// ConflictText is the warning about files of one build ID that contradict one another.
func ConflictText(m *store.Manifest, how string) string {
	return fmt.Sprintf("files of different content have the build ID %s, and names may be those of "+
		"another one: %s", m.ID, how)
}

// otherPlace returns a location of the object that another layout of its build ID, which its
// mappings fit as well, has at another address.
func (o *object) otherPlace(j *join) (text string, found bool) {
	for _, segments := range o.addrs.rivals {
		for l := o.from; l < o.to; l++ {
			off := j.p.Locations[l].Offset
			a, okA := o.addrs.Of(off)
			b, okB := inSegments(segments, off)
			if okA && (!okB || a != b) {
				return fmt.Sprintf("offset %#x", uint64(off)), true
			}
		}
	}
	return "", false
}

// contradict returns the names of the first address that two sources of m name differently. A
// symbol without a size reaches as far as the table knows no other, and contradicts none, but for
// lists of the kernel's, which have all symbols and no sizes.
func contradict(v store.View, m *store.Manifest, first, second int, addrs []addr.Addr) (
	a, b string, found bool) {
	one, other := NewFinder(v, m), NewFinder(v, m)
	one.only, other.only = first+1, second+1
	one.Join(addrs)
	other.Join(addrs)
	for i := range addrs {
		p, q := one.Place(i), other.Place(i)
		x, _ := one.Function(p, SymbolNames)
		y, _ := other.Function(q, SymbolNames)
		open := (p.unsized || q.unsized) && !m.Sources[first].Kind.List()
		if x != 0 && y != 0 && !open && one.Text(x) != other.Text(y) {
			return one.Text(x), other.Text(y), true
		}
	}
	return "", "", false
}

// A kernel's symbols are of another one if so many of its places, in percent, and at least so many,
// are padding between functions. Of 31,190 places of the right one none was; where a kernel has
// code there (FineIBT), little of it is sampled.
const (
	paddingShare  = 2
	paddingPlaces = 3
)

// warnPadding warns if locations of a kernel are in the padding between its functions: no code runs
// there, so a list of symbols that the user named may be from another kernel.
func (j *join) warnPadding(n *ingest.Names) {
	for i := range j.objects {
		o := &j.objects[i]
		src := &j.p.Objects[o.id]
		if src.Kind != ingest.Kernel {
			continue
		}
		named, padding := 0, 0
		for l := o.from; l < o.to; l++ {
			if frames := n.At(ingest.LocationID(l)); len(frames) > 0 {
				named++
				name := n.Functions[frames[len(frames)-1].Func].SystemName
				if strings.HasPrefix(name, symlist.KernelPadding) {
					padding++
				}
			}
		}
		if padding >= paddingPlaces && 100*padding >= paddingShare*named {
			n.Warnings = append(n.Warnings, ingest.Warning{
				Text: fmt.Sprintf("%s: %d of %d places lie between functions, where no code runs: the "+
					"symbols are those of another kernel", texts.Printable(ingest.ShortName(src)),
					padding, named),
				Hint: "a copy of /sys/kernel/notes as notes next to FILE shows of which kernel " +
					"--kallsyms FILE is"})
		}
	}
}
