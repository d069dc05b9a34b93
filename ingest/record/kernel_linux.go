package record

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"symbolize/buildid"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/object/elf"
	"symbolize/ingest/procmaps"
	"symbolize/ingest/record/history"
	"symbolize/ingest/record/sys"
)

// kernel records the kernel's symbols, its notes and the vdso. They are read at the end, when
// reading disturbs nothing: of the earlier data only modules disappear, and moduleRecorder records
// their symbols.
type kernel struct {
	s       *recording
	modules *moduleRecorder
	facts   kernelFacts
	list    []kernelImage

	changes *history.CodeLog // nil if they are not recorded
	// added is changes.Known before the present file's kallsyms was read, plus one; 0 before.
	added uint64
}

// kernelFacts are facts about the kernel from kallsyms.
type kernelFacts struct {
	text, end uint64 // _text to _etext; 0 if hidden
}

// kernelImage is a trampoline or dispatcher in kallsyms.
type kernelImage struct {
	pc   uint64
	name string
}

func (k *kernel) start() error {
	u, err := uname()
	if err != nil {
		return err
	}
	m := &k.s.manifest
	m.Machine, m.Host, m.OSRelease = u.machine, u.host, u.release
	m.ByteOrder, m.PageSize = bundle.OrderName(bigEndian), os.Getpagesize()
	m.CPUs = possibleCPUs(&k.s.host)
	if b, err := os.ReadFile(k.s.host.Path("/proc/sys/kernel/random/boot_id")); err == nil {
		m.BootID = strings.TrimSpace(string(b))
	}
	notes, err := os.ReadFile(k.s.host.Path("/sys/kernel/notes"))
	if err != nil {
		k.s.warn("the kernel's build ID is not known: %v", err)
	} else if id, ok := buildid.KernelNotes(notes); ok {
		m.KernelBuildID = id.Hex()
	}
	return nil
}

func (k *kernel) drain() time.Duration { return 0 }

func (k *kernel) stop() {}

// scan notes the kernel's range and the BPF trampolines of a line of kallsyms.
func (k *kernel) scan(line []byte) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	switch {
	case bytes.HasSuffix(line, []byte(" _text")):
		k.facts.text, _ = lineAddr(line)
	case bytes.HasSuffix(line, []byte(" _etext")):
		k.facts.end, _ = lineAddr(line)
	case bytes.HasSuffix(line, []byte("\t[bpf]")):
		pc, name := lineAddr(line)
		if pc != 0 && isBPFImage(name) && len(k.list) < maxSymbols {
			k.list = append(k.list, kernelImage{pc, string(name)})
		}
	}
}

// lineAddr splits a line of kallsyms. The address is 0 if it is hidden or missing.
func lineAddr(line []byte) (pc uint64, name []byte) {
	fields := bytes.Fields(line)
	if len(fields) < 3 {
		return 0, nil
	}
	pc, err := strconv.ParseUint(string(fields[0]), 16, 64)
	if err != nil {
		return 0, nil
	}
	return pc, fields[2]
}

// images calls visit with the trampolines and dispatchers in kallsyms.
func (k *kernel) images(visit func(pc uint64, name string)) {
	for _, i := range k.list {
		visit(i.pc, i.name)
	}
}

// add adds all of kallsyms, and sets facts and list from it: readers of a bundle without a store
// also need symbols that a store does not keep. Symbols of unloaded modules are at its end.
func (k *kernel) add(w *bundle.Writer) error {
	if notes, err := os.ReadFile(k.s.host.Path("/sys/kernel/notes")); err == nil {
		if err := w.Add(bundle.NotesName, notes); err != nil {
			return err
		}
	}
	if err := k.addSymbols(w); err != nil {
		return err
	}
	image, id, err := ownVDSO(&k.s.host)
	if err != nil {
		k.s.warn("vdso: %v", err)
		return nil
	}
	return w.Add(bundle.VDSOName(id.Hex()), image)
}

// addSymbols adds kallsyms, unless the file has it already and no code was loaded or unloaded since.
// It is read once, as the kernel formats it anew for each reader.
func (k *kernel) addSymbols(w *bundle.Writer) error {
	if k.changes != nil {
		known := k.changes.Known() + 1
		if k.added == known {
			return nil
		}
		k.added = known
	}
	f, err := os.Open(k.s.host.Path("/proc/kallsyms"))
	if err != nil {
		k.s.warn("kallsyms: %v", err)
		return nil
	}
	defer f.Close()
	list := k.symbols(f)
	if k.knownElsewhere() {
		// Without the kernel's address range, known at the end of the file, nothing is left out.
		if _, err = io.Copy(io.Discard, list); err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		if err != nil {
			return err
		}
		omit := k.facts.text != 0
		k.s.manifest.KernelOmitted = omit
		list = k.symbols(f)
		list.omit = omit
	}
	err = w.AddReader(bundle.KallsymsName, io.MultiReader(list, bytes.NewReader(k.modules.Gone())))
	if err != nil {
		return err
	}
	k.s.manifest.Text = bundle.HexAddr(k.facts.text)
	if k.facts.text == 0 {
		k.s.warn("addresses in kallsyms are hidden (kernel.kptr_restrict, CAP_SYSLOG): " +
			"samples of another boot cannot be recognized")
	}
	return nil
}

// knownElsewhere reports whether the kernel's own symbols are available elsewhere.
func (k *kernel) knownElsewhere() bool {
	id, err := buildid.Parse(k.s.manifest.KernelBuildID)
	known := k.s.opts.KnownKernel
	return err == nil && known != nil && known(id)
}

// maxSymbolLine limits a line of kallsyms in bytes: names have up to 511. Longer lines are read in
// parts.
const maxSymbolLine = 4 << 10

// symbolReader reads a list of kallsyms and scans its lines. With omit it leaves out the kernel's
// symbols, but not the lines of modules and of BPF, which have the owner in brackets, and the lines
// with the kernel's addresses.
type symbolReader struct {
	lines *bufio.Reader
	scan  func(line []byte)
	omit  bool
	left  []byte // of the current line
}

// symbols returns a reader that sets facts and list while it reads.
func (k *kernel) symbols(r io.Reader) *symbolReader {
	k.facts, k.list = kernelFacts{}, nil
	return &symbolReader{lines: bufio.NewReaderSize(r, maxSymbolLine), scan: k.scan}
}

func (x *symbolReader) Read(b []byte) (n int, err error) {
	for n < len(b) {
		if len(x.left) == 0 {
			line, err := x.lines.ReadSlice('\n')
			if len(line) == 0 && err != nil {
				return n, err
			}
			x.scan(line)
			if x.omit && isKernels(line) {
				continue
			}
			x.left = line
		}
		c := copy(b[n:], x.left)
		n, x.left = n+c, x.left[c:]
	}
	return n, nil
}

// isKernels reports whether a line has a symbol of the kernel that can be left out.
func isKernels(line []byte) bool {
	if bytes.IndexByte(line, '[') >= 0 {
		return false
	}
	switch _, name := lineAddr(line); string(name) {
	case "_text", "_stext", "_etext":
		return false
	}
	return true
}

// newFile makes the next add independent of earlier ones.
func (k *kernel) newFile() { k.added = 0 }

func (k *kernel) close() {}

// maxVDSO limits the size of the vdso, which has two to four pages.
const maxVDSO = 1 << 20

// ownVDSO returns the vdso of this process, which is the same in all processes, and its build ID.
func ownVDSO(h *sys.Host) ([]byte, buildid.ID, error) {
	image, err := readVDSO(h)
	if err != nil {
		return nil, buildid.ID{}, err
	}
	f, err := elf.Open(procmaps.VDSO, bytes.NewReader(image), int64(len(image)))
	if err == nil && f.ID.IsZero() {
		err = errors.New("no build ID")
	}
	if err != nil {
		return nil, buildid.ID{}, err
	}
	return image, f.ID, nil
}

// readVDSO copies the vdso from this process's memory.
func readVDSO(h *sys.Host) ([]byte, error) {
	b, err := os.ReadFile(h.Path("/proc/self/maps"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(b)) {
		if !strings.HasSuffix(strings.TrimSpace(line), procmaps.VDSO) {
			continue
		}
		var from, to int64
		if _, err := fmt.Sscanf(line, "%x-%x ", &from, &to); err != nil || to <= from ||
			to-from > maxVDSO {
			return nil, fmt.Errorf("invalid mapping %q", line)
		}
		mem, err := os.Open(h.Path("/proc/self/mem"))
		if err != nil {
			return nil, err
		}
		defer mem.Close()
		image := make([]byte, to-from)
		_, err = mem.ReadAt(image, from)
		return image, err
	}
	return nil, errors.New("not mapped in this process")
}

// possibleCPUs returns the number of values in an entry of a per-CPU map; 0 if unknown.
func possibleCPUs(h *sys.Host) int {
	b, err := os.ReadFile(h.Path("/sys/devices/system/cpu/possible"))
	if err != nil {
		return 0
	}
	list, err := sys.ParseCPUs(string(b))
	if err != nil || len(list) == 0 {
		return 0
	}
	return list[len(list)-1] + 1
}

// names are the fields of uname(2).
type names struct{ machine, host, release string }

func uname() (names, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return names{}, os.NewSyscallError("uname", err)
	}
	return names{unix.ByteSliceToString(u.Machine[:]), unix.ByteSliceToString(u.Nodename[:]),
		unix.ByteSliceToString(u.Release[:])}, nil
}

// moduleRecorder records kernel modules.
type moduleRecorder struct {
	*history.Modules
	s *recording
}

func newModules(s *recording) *moduleRecorder {
	return &moduleRecorder{history.NewModules(s.host, history.ModuleReports{Warn: s.warn, Lost: s.lost,
		Wake: s.wake, Clocked: s.clocked}), s}
}

func (m *moduleRecorder) start() error {
	m.Start()
	return nil
}

func (m *moduleRecorder) drain() time.Duration {
	m.Drain()
	return 0
}

func (m *moduleRecorder) stop() { m.Update() }

func (m *moduleRecorder) add(w *bundle.Writer) error {
	n, err := m.Add(w)
	m.s.summary.Modules = max(m.s.summary.Modules, n)
	return err
}

func (m *moduleRecorder) close() { m.Close() }
