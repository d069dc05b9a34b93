package export

import (
	"bufio"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"symbolize/analyze/demangle"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/input"
	"symbolize/ingest/texts"
)

// ScriptOptions are for Script.
type ScriptOptions struct {
	Demangler *demangle.Demangler
	// Chains is, by event, whether its samples carry call chains; perf prints the
	// others on one line. nil means that all do.
	Chains []bool
	// Payloads prints the RAW data of samples: the fields of tracepoints, and BPF output.
	Payloads bool
	// Symbol names the addresses in them; nil names none.
	Symbol input.SymbolFunc
	// Lines prints a line with the file and line below each frame that has them.
	Lines bool
}

// Script writes one sample after another, in the order of replay, as `perf script -F
// comm,pid,tid,time,event,ip,sym,symoff,dso` of perf 6.1 does, with +trace,bpf-output for the
// payloads and +srcline for the lines:
//
//	comm 10304/10304  1061.980973: cpu-clock:
//		ffffffff816cca02 path_init+0x102 ([kernel.kallsyms])
//		           d4ad7 __GI___execve+0x7 (/usr/lib/x86_64-linux-gnu/libc.so.6)
//
// Addresses are the sampled ones, return addresses not moved back; in chains, those in files of
// user space are file offsets, as perf prints them. replay is Capture.Replay. Where a stack could not be
// unwound it has one frame more than perf's, with the reason in place of a function:
//
//	0 [stack truncated] ([unknown])
func Script(w io.Writer, p *ingest.Profile, replay func(func(*input.ReplaySample) error) error,
	opts ScriptOptions) error {
	s := &scriptWriter{p: p, out: bufio.NewWriterSize(w, 64<<10), chains: opts.Chains, opts: &opts}
	if opts.Demangler == nil {
		opts.Demangler = demangle.New(demangle.Templates)
	}
	opts.Demangler.Warm(p)
	s.prepare(opts.Demangler)
	if err := replay(s.sample); err != nil {
		return err
	}
	return s.out.Flush()
}

// scriptWriter holds the texts that lines are put together from.
type scriptWriter struct {
	p      *ingest.Profile
	out    *bufio.Writer
	opts   *ScriptOptions
	chains []bool
	line   []byte
	names  []string // by FuncID: " name"
	dsos   []string // by ObjectID: " (path)"
	events []string // by event: "   name:", right-aligned
}

func (s *scriptWriter) prepare(d *demangle.Demangler) {
	p := s.p
	if p.Names != nil {
		s.names = make([]string, len(p.Names.Functions))
		for i := range p.Names.Functions {
			s.names[i] = " " + d.Name(p.Names.Functions[i].SystemName)
		}
	}
	s.dsos = make([]string, len(p.Objects))
	for i := range p.Objects {
		s.dsos[i] = dsoText(&p.Objects[i])
	}
	width := 0
	for i := range p.Events {
		width = max(width, len(p.Events[i].Name))
	}
	for i := range p.Events {
		name := texts.Printable(p.Events[i].Name)
		s.events = append(s.events, strings.Repeat(" ", max(0, width-len(name)))+name+": ")
	}
}

// dsoText is the object in parentheses; "" for memory that perf names after the
// process.
func dsoText(o *ingest.Object) string {
	path := texts.Printable(o.File.Path)
	switch o.Kind {
	case ingest.Unmapped, ingest.Hypervisor, ingest.NoStack:
		path = "[unknown]"
	case ingest.Guest:
		path = "[guest.kernel.kallsyms]"
	case ingest.Anonymous:
		if isAnonymousFile(o.File.Path) || o.Reason == ingest.TextRemapped {
			return ""
		}
	}
	if o.File.Deleted {
		path += " (deleted)"
	}
	return " (" + path + ")"
}

// isAnonymousFile knows the memory for which perf looks for a perf map (is_anon_memory in its
// util/map.c).
func isAnonymousFile(path string) bool {
	return path == "" || strings.HasPrefix(path, "//anon") ||
		strings.HasPrefix(path, "/dev/zero") ||
		strings.HasPrefix(path, "/anon_hugepage")
}

func (s *scriptWriter) sample(r *input.ReplaySample) error {
	chain := s.chains == nil || int(r.Event) >= len(s.chains) || s.chains[r.Event]
	b := s.head(s.line[:0], r, chain)
	for i := range r.Frames {
		if i > 0 && !chain {
			break
		}
		b = s.frame(b, r, &r.Frames[i], chain)
	}
	if r.Payload != nil && s.opts.Payloads {
		b = r.Payload.AppendOutput(b)
	}
	b = append(b, '\n')
	s.line = b
	_, err := s.out.Write(b)
	return err
}

// head writes "comm pid/tid seconds: event: " and, with a chain, the line's end.
func (s *scriptWriter) head(b []byte, r *input.ReplaySample, chain bool) []byte {
	comm := texts.Printable(r.Comm)
	if !chain {
		b = pad(b, 16-len(comm))
	}
	b = append(append(b, comm...), ' ')
	at := len(b)
	b = strconv.AppendInt(b, int64(r.PID), 10)
	b = insertPad(b, at, 5)
	b = append(b, '/')
	at = len(b)
	b = strconv.AppendInt(b, int64(r.TID), 10)
	b = pad(b, 5-(len(b)-at))
	b = append(b, ' ')
	at = len(b)
	b = strconv.AppendUint(b, r.Time/1e9, 10)
	b = append(b, '.')
	micros := r.Time % 1e9 / 1e3
	for unit := uint64(100_000); unit > 0; unit /= 10 {
		b = append(b, byte('0'+micros/unit%10))
	}
	b = insertPad(b, at, 12)
	b = append(b, ": "...)
	if int(r.Event) < len(s.events) {
		b = append(b, s.events[r.Event]...)
	}
	if r.Payload != nil && s.opts.Payloads {
		b = r.Payload.AppendFields(b, s.opts.Symbol)
	}
	if chain {
		return append(b, '\n')
	}
	return append(b, ' ')
}

func pad(b []byte, n int) []byte {
	for range n {
		b = append(b, ' ')
	}
	return b
}

// insertPad right-aligns the text appended since at.
func insertPad(b []byte, at, width int) []byte {
	for len(b)-at < width {
		b = slices.Insert(b, at, ' ')
	}
	return b
}

// frame writes the frames of one location, innermost first.
func (s *scriptWriter) frame(b []byte, r *input.ReplaySample, f *input.ReplayFrame,
	chain bool) []byte {
	loc := &s.p.Locations[f.Location]
	o := &s.p.Objects[loc.Object]
	if o.Kind == ingest.NoStack {
		return s.missing(b, o, chain)
	}
	shown := uint64(f.PC)
	if chain && o.Kind == ingest.ELF && o.File.Path != ingest.VsyscallPath || chain && o.Kind == ingest.VDSO {
		shown = uint64(addr.Return(loc.Offset, f.Return))
	}
	var frames []ingest.Frame
	symOff := uint64(0)
	if n := s.p.Names; n != nil {
		frames = n.At(f.Location)
		symOff = addr.Return(n.SymOff[f.Location], f.Return)
	}
	for i := range frames {
		b = s.address(b, shown, chain)
		b = append(b, s.names[frames[i].Func]...)
		if frames[i].Inlined {
			b = append(b, " (inlined)"...)
		} else {
			if symOff != 0 || !s.p.Stats.NoStarts { // the recorder's names have no starts
				b = append(b, "+0x"...)
				b = strconv.AppendUint(b, symOff, 16)
			}
			b = append(b, s.dsos[loc.Object]...)
		}
		b = s.srcline(b, &frames[i])
		if chain {
			b = append(b, '\n')
		}
	}
	if len(frames) == 0 {
		b = s.address(b, shown, chain)
		b = append(b, " [unknown]"...)
		b = append(b, s.dso(loc.Object, r)...)
		if chain {
			b = append(b, '\n')
		}
	}
	return b
}

// srcline writes the name of a frame's file, without directories, and its line.
func (s *scriptWriter) srcline(b []byte, f *ingest.Frame) []byte {
	file := s.p.Names.Functions[f.Func].File
	if !s.opts.Lines || file == "" || f.Line == 0 {
		return b
	}
	b = append(b, "\n  "...)
	b = append(b, texts.Printable(path.Base(file))...)
	b = append(b, ':')
	return strconv.AppendInt(b, int64(f.Line), 10)
}

// missing writes the frame with the reason why callers are missing, in the form of perf's frames,
// so that programs that read them have it in their stacks.
func (s *scriptWriter) missing(b []byte, o *ingest.Object, chain bool) []byte {
	b = append(s.address(b, 0, chain), ' ')
	b = append(ingest.AppendUnresolved(b, o, 0), " ([unknown])"...)
	if chain {
		b = append(b, '\n')
	}
	return b
}

func (s *scriptWriter) dso(id ingest.ObjectID, r *input.ReplaySample) string {
	if s.dsos[id] == "" {
		return " (/tmp/perf-" + strconv.Itoa(int(r.PID)) + ".map)"
	}
	return s.dsos[id]
}

// address writes an address as "%16x", after a tab within a chain.
func (s *scriptWriter) address(b []byte, a uint64, chain bool) []byte {
	if chain {
		b = append(b, '\t')
	}
	const digits = "0123456789abcdef"
	at := len(b)
	b = append(b, "                "...)
	for i := at + 15; ; i-- {
		b[i] = digits[a&15]
		if a >>= 4; a == 0 {
			return b
		}
	}
}
