package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"symbolize/ingest/addr"
)

// Printable returns s fit for a terminal, a line of text and a protobuf string: control and format
// characters (escape sequences, line breaks, bidirectional overrides) and invalid UTF-8 become '?'.
// Names come from captures and debug files and are not trusted.
func Printable(s string) string {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' {
			return printableSlow(s)
		}
	}
	return s
}

// OneLine returns s fit for one line of a terminal.
func OneLine(s string) string {
	return Printable(strings.ReplaceAll(strings.TrimSpace(s), "\n", "; "))
}

func printableSlow(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if n == 1 && r == utf8.RuneError || !fitRune(r) {
			b.WriteByte('?')
		} else {
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// fitRune reports whether a character may reach a terminal or a line of text.
func fitRune(r rune) bool {
	return !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) && r != '\u2028' && r != '\u2029'
}

// BaseName returns the last element of a path; "" if it ends in a slash.
func BaseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// ShortName is the name of an object in unresolved frames: the last element of its path without
// brackets, or a substitute.
func ShortName(o *Object) string {
	name := o.File.Path
	if file, ok := NoTableFile(name); ok && o.Kind == NoStack {
		name = "[no unwind table: " + path.Base(file) + "]"
	} else if file, ok := RemappedFile(name); ok {
		name = RemappedPath(BaseName(file))
	} else if i := strings.LastIndexByte(name, '/'); i >= 0 && i+1 < len(name) {
		name = name[i+1:]
	}
	if name, _ = Unbracket(name); name != "" {
		return Printable(name)
	}
	if !o.ID.IsZero() {
		return "buildid:" + o.ID.Hex()
	}
	switch o.Kind {
	case Anonymous:
		return "anon"
	case Unmapped:
		return "unmapped"
	case Guest:
		return "guest"
	case Hypervisor:
		return "hypervisor"
	case NoStack:
		return "no stack"
	}
	return "unknown"
}

// RemappedPath returns the path of an object of anonymous memory in the place of a file's code.
func RemappedPath(file string) string { return "[anon:" + file + "]" }

// RemappedFile is the inverse of RemappedPath; ok is false for other paths.
func RemappedFile(path string) (file string, ok bool) {
	file, ok = strings.CutPrefix(path, "[anon:")
	if !ok || !strings.HasPrefix(file, "/") {
		return "", false
	}
	return strings.CutSuffix(file, "]")
}

// Collapsed reports whether all addresses of such objects are one location with Offset 0.
func (k ObjectKind) Collapsed() bool { return k >= Anonymous }

// AppendUnresolved appends the text of an unresolved frame to b: "[libc.so.6+0x27220]",
// or "[anon]" for a kind that is Collapsed.
func AppendUnresolved(b []byte, o *Object, off addr.Offset) []byte {
	b = append(b, '[')
	b = append(b, ShortName(o)...)
	if !o.Kind.Collapsed() {
		b = append(b, "+0x"...)
		b = strconv.AppendUint(b, uint64(off), 16)
	}
	return append(b, ']')
}

// NewJSONEncoder returns an encoder of text fit for a terminal. encoding/json does not escape DEL,
// C1 controls, which some terminals obey, and format characters: they are escaped here. Readers of
// JSON see no difference.
func NewJSONEncoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(&jsonWriter{w: w})
	enc.SetEscapeHTML(false)
	return enc
}

// WriteJSON writes an object as indented JSON with a final newline. Its first key, schema, has the
// name and the version of its form, "top/1": docs/json.md has the keys of each. The version changes
// if a key goes or changes its meaning.
func WriteJSON(w io.Writer, schema string, object any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(object); err != nil {
		return err
	}
	rest, ok := bytes.CutPrefix(text.Bytes(), []byte("{"))
	if !ok {
		return fmt.Errorf("the JSON of %s is not an object", schema)
	}
	head := "{\n  \"schema\": " + strconv.Quote(schema)
	if rest[0] == '}' {
		head += "\n"
	} else {
		head += ","
	}
	if _, err := io.WriteString(w, head); err != nil {
		return err
	}
	_, err := (&jsonWriter{w: w}).Write(rest)
	return err
}

// WriteJSONList writes an object as WriteJSON does, with a list of the values, which are written one
// at a time. It ends at the first error.
func WriteJSONList[T any](w io.Writer, schema, key string, values iter.Seq2[T, error]) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("    ", "  ")
	head := fmt.Sprintf("{\n  \"schema\": %q,\n  %q: [", schema, key)
	begin, end := head+"\n    ", head+"]\n}\n"
	out := jsonWriter{w: w}
	for v, err := range values {
		text.WriteString(begin)
		if err == nil {
			err = enc.Encode(v)
		}
		if err != nil {
			return err
		}
		text.Truncate(text.Len() - 1) // the newline after a value
		if _, err := out.Write(text.Bytes()); err != nil {
			return err
		}
		text.Reset()
		begin, end = ",\n    ", "\n  ]\n}\n"
	}
	_, err := io.WriteString(w, end)
	return err
}

// AppendJSONString appends s as a JSON string as NewJSONEncoder writes it.
func AppendJSONString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			b, _ := json.Marshal(s) // no error: any string can be encoded
			return appendJSONText(dst, b)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// jsonWriter escapes JSON text. Encoders write whole values at a time.
type jsonWriter struct {
	w   io.Writer
	buf []byte
}

func (j *jsonWriter) Write(b []byte) (int, error) {
	j.buf = appendJSONText(j.buf[:0], b)
	if _, err := j.w.Write(j.buf); err != nil {
		return 0, err
	}
	return len(b), nil
}

// appendJSONText copies JSON text. Characters to escape occur only in strings.
func appendJSONText(dst, text []byte) []byte {
	from := 0
	for i := 0; i < len(text); {
		if c := text[i]; c >= ' ' && c <= '~' || c == '\n' {
			i++
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		if fitRune(r) || r == utf8.RuneError || r < ' ' {
			i += n
			continue
		}
		dst = append(dst, text[from:i]...)
		dst = appendEscaped(dst, r)
		i += n
		from = i
	}
	return append(dst, text[from:]...)
}

// appendEscaped appends an escaped character, as a surrogate pair if it has more than 16 bits.
func appendEscaped(dst []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	units := []rune{r}
	if r >= 0x10000 {
		units = []rune{0xd800 + (r-0x10000)>>10, 0xdc00 + (r-0x10000)&0x3ff}
	}
	for _, u := range units {
		dst = append(dst, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
	}
	return dst
}

// Names of perf and the kernel for mappings without a file, or of deleted files.
const (
	// KernelMapName is the name of the kernel's mapping without its suffix, the name of the
	// reference symbol.
	KernelMapName = "[kernel.kallsyms]"
	DeletedSuffix = " (deleted)"
	// LinkedAddresses is the reference symbol of addresses as the linker made them: of a kernel that
	// runs where it was linked, if the recorder did not know its symbols, and of ELF files in
	// profiles of programs that convert addresses. It is the address 0.
	LinkedAddresses = "0"
)

// LoadText is Object.RefSymbol of a function of one load of a BPF program, by the program's ID.
func LoadText(id uint32) string { return "load " + strconv.FormatUint(uint64(id), 10) }

// GuestComm is the comm of all threads of a virtual machine, by its process on the host.
func GuestComm(machine int32) string { return "guest " + strconv.Itoa(int(machine)) }

// Unbracket returns a name without its brackets, and whether it has any.
func Unbracket(s string) (inner string, ok bool) {
	if len(s) > 2 && s[0] == '[' && s[len(s)-1] == ']' {
		return s[1 : len(s)-1], true
	}
	return s, false
}

// IsVmlinux reports whether the last element of a path names a kernel image.
func IsVmlinux(base string) bool {
	return base == "vmlinux" || strings.HasPrefix(base, "vmlinux-")
}

// Interpreter returns the type of the frames of an object that interpreters have in place of files:
// "cpython". Their Offsets are no addresses.
func (o *Object) Interpreter() (frameType string, ok bool) {
	switch o.File.Path {
	case UnmappedPath, UnmappedKernelPath, AmbiguousPath, AmbiguousJITPath, AmbiguousKernelPath:
		return "", false
	}
	frameType, ok = Unbracket(o.File.Path)
	return frameType, ok && o.Kind == Unmapped
}

// IsAnonymousName reports whether a name of perf or /proc/PID/maps is for memory without a file.
func IsAnonymousName(file string) bool {
	if file == "" || file == "[heap]" || file == "[anon]" {
		return true
	}
	return slices.ContainsFunc([]string{"//anon", "[stack", "[anon:", "/SYSV", "/dev/zero",
		"/anon_hugepage", "/memfd:"}, func(p string) bool { return strings.HasPrefix(file, p) })
}

// IsSignalReturn reports whether a symbol is of code that signal handlers return to, which only
// makes the system call: in C libraries (restorers), vdsos and Go, and names made of its address
// (SignalPrefix).
func IsSignalReturn(function string) bool {
	switch function {
	case "__restore_rt", "__restore", "__default_sa_restorer", "__default_rt_sa_restorer":
		return true
	}
	return strings.HasPrefix(function, "__kernel_") && strings.HasSuffix(function, "sigreturn") ||
		strings.HasPrefix(function, "runtime.sigreturn") ||
		strings.HasPrefix(function, SignalPrefix)
}

var objectKindText = [...]string{
	ELF: "elf", VDSO: "vdso", Kernel: "kernel", Module: "module", JIT: "jit",
	PerfMap: "perf map", JITDump: "jitdump", Anonymous: "anonymous", Unmapped: "unmapped", Guest: "guest",
	Hypervisor: "hypervisor", NoStack: "no stack",
}

// String returns the kind in lower case, as reports print it.
func (k ObjectKind) String() string {
	if int(k) < len(objectKindText) {
		return objectKindText[k]
	}
	return "unknown"
}

var idSourceText = [...]string{
	IDNone:     "none",
	IDRecorded: "recorded",
	IDSibling:  "recorded for the same file",
	IDByPath:   "listed for the path",
	IDProven:   "file proven the same",
	IDTrusted:  "path trusted",
	IDDerived:  "derived",
	IDNamed:    "named with --with",
}

// String returns the source in words, as reports print it.
func (s IDSource) String() string {
	if int(s) < len(idSourceText) {
		return idSourceText[s]
	}
	return "unknown"
}

// ShellWord quotes a path for the shell. Paths come from captures: pasting a hint must not run
// their text.
func ShellWord(path string) string {
	path = Printable(path)
	for i := range len(path) {
		c := path[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.IndexByte("/._-+,:@%=", c) >= 0 {
			continue
		}
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

// hintError is an error with the command or step that fixes it.
type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() }
func (e *hintError) Unwrap() error { return e.err }
func (e *hintError) Hint() string  { return e.hint }

// WithHint returns err with the command or step that fixes it, which the method Hint of the result
// returns. The text of the error and the errors it wraps are unchanged.
func WithHint(err error, format string, args ...any) error {
	return &hintError{err: err, hint: fmt.Sprintf(format, args...)}
}
