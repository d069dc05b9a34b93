// Package demangle makes readable names of the symbols of compilers: of C++, Rust, Go, OCaml and
// Haskell, in the forms that perf, LLVM's tools and pprof print.
//
// The library demangles; this package chooses how much of a name is shown, repairs what the library
// gets wrong, and bounds the work and the length of hostile names.
package demangle

import (
	"bytes"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync"

	"github.com/ianlancetaylor/demangle"

	"symbolize/ingest"
	"symbolize/ingest/texts"
)

// Mode selects how much of a name is shown that a compiler encoded: of C++ and Rust, and of OCaml and
// Haskell, which are shown whole in each mode but None. The words are pprof's.
type Mode uint8

// The modes.
const (
	Simple    Mode = iota // no parameters, no template arguments; see simplify
	Templates             // no parameters; as perf prints
	Full                  // all of it
	None                  // mangled
)

// modes holds the words for the modes, in their order.
var modes = []string{Simple: "simple", Templates: "templates", Full: "full", None: "none"}

// String returns the mode's word.
func (m Mode) String() string { return modes[m] }

// ParseMode is the inverse of String.
func ParseMode(s string) (Mode, error) {
	for i, word := range modes {
		if s == word {
			return Mode(i), nil
		}
	}
	return 0, fmt.Errorf("demangle mode %q is not one of simple, templates, full, none", s)
}

const (
	// maxMangled is the longest name that is demangled, in bytes. Names of 20,731 bytes have been
	// seen.
	maxMangled = 32 << 10
	// maxDemangledShift caps a demangled name at 64 KiB: the substitutions of a short hostile one
	// can grow without end.
	maxDemangledShift = 16
)

// Demangler turns names of symbol tables into readable ones. It is for one goroutine at a time and
// does each distinct name once.
type Demangler struct {
	mode    Mode
	llvm    bool
	options []demangle.Option
	cache   map[string]string
}

// New returns a Demangler.
func New(mode Mode) *Demangler {
	d := &Demangler{mode: mode, cache: make(map[string]string)}
	d.options = []demangle.Option{demangle.NoClones, demangle.MaxLength(maxDemangledShift)}
	switch mode {
	case Simple:
		d.options = append(d.options, demangle.NoParams, demangle.NoEnclosingParams,
			demangle.NoTemplateParams)
	case Templates:
		d.options = append(d.options, demangle.NoParams, demangle.NoEnclosingParams)
	}
	return d
}

// NewLLVM returns a Demangler that spells names as the tools of LLVM 14 do:
// clones as in "f() (.cold)", names with versions mangled, lambdas as 'lambda'. Of the
// 33,122 names of a large C++ program 1 % differ, in parentheses and auto parameters.
func NewLLVM(mode Mode) *Demangler {
	d := New(mode)
	d.llvm = true
	d.options = append(d.options, demangle.LLVMStyle)
	return d
}

// Revision is the revision of the names that a Demangler makes, for stores of names. It ends
// in the version of the library, and changes with it and with every change here that changes a
// name.
const Revision = "83e58baca724.4"

// Uncached is Name for several goroutines, each name done every time.
func (d *Demangler) Uncached(system string) string {
	if d.mode == None || !d.changes(system) {
		return texts.Printable(system)
	}
	return texts.Printable(d.demangle(system))
}

// Name returns a name as it is printed: demangled by the mode, and without anything that could act
// on a terminal.
func (d *Demangler) Name(system string) string {
	if d.mode == None || !d.changes(system) {
		return texts.Printable(system)
	}
	name, ok := d.cache[system]
	if !ok {
		name = d.Uncached(system)
		d.cache[system] = name
	}
	return name
}

// warmAt is how many names make it worth to demangle on several cores.
const warmAt = 200

// Warm demangles all names of a profile on all cores, so that Name finds them done: a name costs
// some microseconds, and a C++ profile has thousands.
func (d *Demangler) Warm(p *ingest.Profile) {
	if d.mode == None || p.Names == nil {
		return
	}
	d.WarmNames(func(yield func(string) bool) {
		for i := range p.Names.Functions {
			if !yield(p.Names.Functions[i].SystemName) {
				return
			}
		}
	})
}

// WarmNames is Warm for any names. It returns how many it demangled.
func (d *Demangler) WarmNames(names iter.Seq[string]) int {
	if d.mode == None {
		return 0
	}
	var todo []string
	for s := range names {
		if d.changes(s) {
			if _, ok := d.cache[s]; !ok {
				d.cache[s] = ""
				todo = append(todo, s)
			}
		}
	}
	done := make([]string, len(todo))
	workers := min(runtime.GOMAXPROCS(0), 1+len(todo)/warmAt)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(todo); i += workers {
				done[i] = d.Uncached(todo[i])
			}
		})
	}
	wg.Wait()
	for i, s := range todo {
		d.cache[s] = done[i]
	}
	return len(todo)
}

// changes reports whether a name may be printed otherwise than it is in the symbol table.
func (d *Demangler) changes(s string) bool {
	return mangled(s) || !d.llvm && mayBeEncoded(s) || d.mode == Simple && (strings.Contains(s, goShape) && !d.llvm ||
		strings.Contains(s, lambda) || strings.Contains(s, "<"))
}

// mangled reports whether a name may be a mangled one.
func mangled(s string) bool {
	return len(s) > 2 && s[0] == '_' && len(s) <= maxMangled &&
		(s[1] == 'Z' || s[1] == 'R' || strings.HasPrefix(s, "_GLOBAL_"))
}

// pltSuffix ends the name of a stub of the procedure linkage table. LLVM's tools name no stubs.
const pltSuffix = "@plt"

// demangle removes suffixes of the mangled name and appends them in readable form: "@plt" and
// versions as they are, clones as binutils prints them; the hash that LLVM gives to promoted locals
// is dropped.
func (d *Demangler) demangle(s string) (name string) {
	defer func() {
		if recover() != nil { // hostile input must not end the report
			name = s
		}
	}()
	if !mangled(s) && d.llvm {
		return cutTemplates(s)
	}
	if !mangled(s) {
		if name, ok := Encoded(s); ok {
			return name
		}
		if d.mode != Simple {
			return s
		}
		return simplify(cutTemplates(s), false)
	}
	core, version := s, ""
	if d.llvm && strings.Contains(strings.TrimSuffix(s, pltSuffix), "@") {
		return s
	}
	if at := strings.IndexByte(s, '@'); at >= 0 {
		core, version = s[:at], s[at:]
	}
	core, clones := cutClones(core)
	name, ok := d.library(core)
	if !ok {
		return s
	}
	if d.llvm {
		if strings.HasPrefix(core, "_Z") {
			name = spaced(name)
		}
		if clones != "" {
			name += " (" + clones + ")"
		}
		return name + version
	}
	if d.mode == Simple {
		name = simplify(name, isRust(core))
	}
	if at := strings.Index(clones, ".llvm."); at >= 0 {
		end := at + len(".llvm.")
		for end < len(clones) && clones[end] >= '0' && clones[end] <= '9' {
			end++
		}
		clones = clones[:at] + clones[end:]
	}
	if clones != "" {
		name += " [clone " + clones + "]"
	}
	return name + version
}

// library has the library demangle a name without clones. It reports false if it cannot, or would
// do it wrong.
func (d *Demangler) library(core string) (string, bool) {
	v0 := strings.HasPrefix(core, "_R")
	if v0 {
		clear, ok := clearRust(core)
		if !ok {
			return "", false
		}
		core = clear
	} else if !isRust(core) && misnumbers(core) {
		return "", false
	}
	name, err := demangle.ToString(core, d.options...)
	if v0 {
		name = emptyParts.Replace(name)
		name = strings.TrimSuffix(name, "::")
	}
	return name, err == nil
}

// emptyParts removes the colons that the library writes before an unnamed part of a path, as in
// constructors: other demanglers write "Option::Some".
var emptyParts = strings.NewReplacer("::>", ">", "::,", ",", "::)", ")", "::]", "]", ":: ", " ",
	"::::", "::")

// spaced puts the spaces into a name of C++ that LLVM wrote up to version 14 and that the
// library, which follows later ones, leaves out: "> >", "::* (".
func spaced(name string) string {
	if !strings.Contains(name, ">>") && !strings.Contains(name, "::*(") {
		return name
	}
	b := make([]byte, 0, len(name)+len(name)/16)
	for i := range len(name) {
		c := name[i]
		if n := len(b); n > 0 && (c == '>' && b[n-1] == '>' && !isOperator(b) ||
			c == '(' && bytes.HasSuffix(b, memberPointer)) {
			b = append(b, ' ')
		}
		b = append(b, c)
	}
	return string(b)
}

var memberPointer = []byte("::*")

// isOperator reports whether a name so far ends in an operator of '>'.
func isOperator(b []byte) bool {
	for _, op := range []string{"operator>", "operator->"} {
		if bytes.HasSuffix(b, []byte(op)) {
			return true
		}
	}
	return false
}

// isRust reports whether a mangled name, without clones, is one of Rust.
func isRust(core string) bool {
	return strings.HasPrefix(core, "_R") || legacyRust(core) == len(core)
}

// legacyRust returns the end of the hash that ends a name in Rust's old mangling, "17h" and 16
// digits; 0 if there is none.
func legacyRust(s string) int {
	if at := strings.LastIndex(s, "17h"); at >= 0 && len(s) >= at+20 && s[at+19] == 'E' {
		return at + 20
	}
	return 0
}

// RustHash returns the hash that a symbol in Rust's old mangling ends with, "h" and 16 digits, and
// what follows it, as ".llvm.77"; "" of all other symbols. Instances of a generic function differ
// in nothing else.
func RustHash(symbol string) string {
	end := legacyRust(symbol)
	if end == 0 {
		return ""
	}
	return symbol[end-18:end-1] + symbol[end:]
}

// cutClones cuts suffixes such as ".isra.0" and ".cold" off a mangled name. The old Rust mangling
// has dots inside, and ends with a hash.
func cutClones(s string) (core, clones string) {
	from := legacyRust(s)
	if at := strings.IndexByte(s[from:], '.'); at >= 0 {
		return s[:from+at], s[from+at:]
	}
	return s, ""
}
