package dwarf

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"sync"

	"symbolize/ingest/decode"
	"symbolize/ingest/files"
)

// A RawSection is the position of a DWARF section in a file.
type RawSection struct {
	Name       string // as in the file: ".debug_info", ".zdebug_info", ".debug_info.dwo"
	Offset     uint64
	Size       uint64
	Compressed bool // SHF_COMPRESSED: begins with an Elf32_Chdr or Elf64_Chdr
	Index      int  // the caller's number for LoadOptions.Patch: names are not unique
}

// LoadOptions holds the parameters for reading the sections of a file.
type LoadOptions struct {
	Name      string // of the file, for messages
	Class64   bool   // ELFCLASS64
	BigEndian bool
	Split     bool   // read the sections with names that end in ".dwo"
	Variables bool   // read the sections that only a Tree needs: location lists, type units
	Workers   int    // sections inflated at the same time
	TempDir   string // for inflated sections; "" is os.TempDir

	// Grow lets Load return while a large .debug_info is still being inflated, if there
	// is a worker for that besides the one for all other sections: Sections.Growth is
	// set then, and Loaded.Wait has to be called for the problems.
	Grow bool

	// Patch, if not nil, may change the contents of a section: it relocates sections of relocatable
	// files. Sections are then read into memory.
	Patch func(s RawSection, b []byte) error
}

// Loaded is a file's DWARF sections in memory, mapped where possible.
type Loaded struct {
	Sections Sections
	Problems []*decode.Error // sections that are lost, or end early
	// Failed is set if some problems are failures of this machine: no space for an inflated
	// section, or a failed mapping. Another run may succeed.
	Failed error

	growing RawSection // the one of Sections.Growth
	opts    LoadOptions

	mu    sync.Mutex
	maps  [][]byte
	files []*os.File
}

// wanted maps the names of sections without their prefix to their fields.
func (s *Sections) wanted(variables bool) map[string]*[]byte {
	m := map[string]*[]byte{
		"info": &s.Info, "abbrev": &s.Abbrev, "line": &s.Line, "line_str": &s.LineStr,
		"str": &s.Str, "str_offsets": &s.StrOffsets, "addr": &s.Addr,
		"ranges": &s.Ranges, "rnglists": &s.RngLists, "cu_index": &s.CUIndex,
	}
	if variables {
		maps.Copy(m, map[string]*[]byte{"loc": &s.Loc, "loclists": &s.LocLists, "types": &s.Types,
			"tu_index": &s.TUIndex})
	}
	return m
}

// sharedWithSkeleton lists sections that a file with split units has under their plain names only.
func sharedWithSkeleton(name string) bool { return name == "cu_index" || name == "tu_index" }

// Load reads the DWARF sections among secs from r. A *os.File is mapped; it must not shrink while
// a Data uses it. Unreadable sections are left out, with a problem. Loaded.Close must be called
// when no Data uses the sections any more.
func Load(r io.ReaderAt, secs []RawSection, o LoadOptions) *Loaded {
	o.Grow = o.Grow && canGrow && o.Workers > 1 && o.Patch == nil
	l := &Loaded{opts: o}
	l.Sections.BigEndian = o.BigEndian
	wanted := l.Sections.wanted(o.Variables)
	workers := o.Workers
	if o.Grow {
		workers-- // the other one inflates .debug_info
	}
	limit := make(chan struct{}, max(1, workers))
	var running sync.WaitGroup
	for _, s := range withoutTypes(r, secs, &o) {
		name, compressed, ok := sectionName(s.Name, o.Split)
		dst := wanted[name]
		if !ok || dst == nil {
			continue
		}
		delete(wanted, name) // of several, the first counts
		limit <- struct{}{}
		running.Go(func() {
			b, err := l.section(r, s, compressed, o.Grow && name == "info")
			if err == nil && o.Patch != nil {
				err = o.Patch(s, b)
			}
			*dst = b
			if err != nil {
				l.problem(s, err)
			}
			<-limit
		})
	}
	running.Wait()
	return l
}

// sectionName returns the name of a DWARF section without prefix and suffix, and
// whether it is compressed in the old GNU way.
func sectionName(name string, split bool) (base string, gnu, ok bool) {
	base, ok = strings.CutPrefix(name, ".debug_")
	if !ok {
		if base, ok = strings.CutPrefix(name, ".zdebug_"); !ok {
			return "", false, false
		}
		gnu = true
	}
	base, dwo := strings.CutSuffix(base, ".dwo")
	return base, gnu, dwo == split || split && sharedWithSkeleton(base)
}

func (l *Loaded) problem(s RawSection, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var local *localError
	switch {
	case l.Failed != nil:
	case errors.As(err, &local):
		l.Failed = local.err
	case files.OfMachine(err):
		l.Failed = err
	}
	var known *decode.Error
	if !errors.As(err, &known) {
		known = &decode.Error{Name: l.opts.Name, Offset: int64(s.Offset),
			Reason: fmt.Sprintf("section %s: %v", s.Name, err)}
	}
	l.Problems = append(l.Problems, known)
}

// section reads one section, inflated; with grow it may go on with that after it returns.
// It can return bytes and an error.
func (l *Loaded) section(r io.ReaderAt, s RawSection, gnu, grow bool) ([]byte, error) {
	if s.Compressed || gnu {
		return l.inflate(r, s, gnu, grow)
	}
	if s.Size > maxInflated {
		return nil, errors.New("section is too large")
	}
	if f, ok := files.FileOf(r); ok && l.opts.Patch == nil && s.Size >= heapSection {
		if st, err := f.Stat(); err != nil {
			return nil, err
		} else if n := uint64(st.Size()); s.Offset > n || s.Size > n-s.Offset {
			return nil, errors.New("section is longer than the file")
		}
		b, m, err := mapFile(f, s.Offset, s.Size)
		if err != nil {
			return nil, &localError{fmt.Errorf("mapping: %w", err)}
		}
		l.keep(m, nil)
		return b, nil
	}
	return readAll(io.NewSectionReader(r, int64(s.Offset), int64(s.Size)), s.Size)
}

// readAll reads size bytes piece by piece, so that a size beyond the end of the file
// costs no more memory than the file has bytes.
func readAll(r io.Reader, size uint64) ([]byte, error) {
	var b []byte
	for uint64(len(b)) < size {
		n := int(min(size-uint64(len(b)), uint64(max(len(b), heapSection))))
		start := len(b)
		b = append(b, make([]byte, n)...)
		got, err := io.ReadFull(r, b[start:])
		if err != nil {
			return b[:start+got], fmt.Errorf("reading: %w", err)
		}
	}
	return b, nil
}

// localError is a failure of this machine, not of the input file.
type localError struct{ err error }

func (e *localError) Error() string { return e.err.Error() }
func (e *localError) Unwrap() error { return e.err }

func (l *Loaded) keep(m []byte, f *os.File) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m != nil {
		l.maps = append(l.maps, m)
	}
	if f != nil {
		l.files = append(l.files, f)
	}
}

// Release gives the pages of the mapped sections back to the system, which reads them again when
// they are needed. It may be called while a Data uses them.
func (l *Loaded) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.maps {
		dropPages(m)
	}
}

// Wait waits until all sections are inflated, and adds their errors to Problems.
func (l *Loaded) Wait() {
	g := l.Sections.Growth
	if g == nil {
		return
	}
	if err := g.wait(); err != nil && !errors.Is(err, errStopped) {
		l.problem(l.growing, err)
	}
	l.Sections.Growth = nil
}

// Close unmaps the sections. No Data may use them after that.
func (l *Loaded) Close() error {
	if g := l.Sections.Growth; g != nil {
		g.Stop()
		l.Wait()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, m := range l.maps {
		errs = append(errs, unmap(m))
	}
	for _, f := range l.files {
		errs = append(errs, f.Close())
	}
	l.maps, l.files, l.Sections = nil, nil, Sections{}
	return errors.Join(errs...)
}
