package report

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/ianlancetaylor/demangle"
)

// TestItaniumForms demangles one name of each production, without the library.
func TestItaniumForms(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"_Z1fv", "f()"},
		{"_Z3foo", "foo"},
		{"_Z1fiPKcz", "f(int, char const*, ...)"},
		{"_ZN1a1b1cEhj", "a::b::c(unsigned char, unsigned int)"},
		{"_ZNK1a1fEv", "a::f() const"},
		{"_ZNO1a1fEv", "a::f() &&"},
		{"_ZNKR1a1fEv", "a::f() const &"},
		{"_ZN1aC2ERKS_", "a::a(a const&)"},
		{"_ZN1aD0Ev", "a::~a()"},
		{"_ZN1aIiEC1Ev", "a<int>::a()"},
		{"_ZN1aIiEC1IlEET_", "a<int>::a<long>(long)"},
		{"_ZN1apLERKS_", "a::operator+=(a const&)"},
		{"_ZN1alsIiEEvT_", "void a::operator<< <int>(int)"},
		{"_ZN1anwEm", "a::operator new(unsigned long)"},
		{"_ZSt4moveIRiEOT_S1_", "int& std::move<int&>(int&)"},
		{"_Z1fIJicEEvDpT_", "void f<int, char>(int, char)"},
		{"_Z1fIJEEvDpT_", "void f<>()"},
		{"_Z1fIJRiKcEEvDpOT_", "void f<int&, char const>(int&, char const&&)"},
		{"_Z1fPFviE", "f(void (*)(int))"},
		{"_Z1fRPFPcvE", "f(char* (*&)())"},
		{"_Z1fSt8functionIFviEE", "f(std::function<void (int)>)"},
		{"_Z1fI1aIS0_IiEEEvv", "void f<a<a<int> > >()"},
		{"_Z1fILi3ELb1ELln4ELj5EL1e6EEvv", "void f<3, true, -4l, 5u, (e)6>()"},
		{"_Z1fSsSaIcE", "f(std::string, std::allocator<char>)"},
		{"_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f()"},
		{"_Z1fB5cxx11v", "f[abi:cxx11]()"},
		{"_Z1fIiENT_1xES0_", "int::x f<int>(int)"},
	} {
		var p itanium
		if got, ok := p.demangle(c.name, false); !ok || got != c.want {
			t.Errorf("%s: %q, %v; want %q", c.name, got, ok, c.want)
		}
	}
	for _, left := range []string{
		"", "_Z", "_R1f", "_ZTV1a", "_ZZ1fvE1x", "_ZN1aUlvE_clEv", "_Z1fA3_i",
		"_Z1fM1aFvvE", "_ZN4core3fmt5Write17h0123456789abcdefE", "_Z1fIXadL_Z1gvEEEvv", "_Z1fT_",
		"_Z1fS_", "_Z1fv.cold", "_Z9f", "_ZN1aE1", "_ZN1agtERKS_",
	} {
		var p itanium
		if got, ok := p.demangle(left, false); ok {
			t.Errorf("%s: %q; it is for the library", left, got)
		}
	}
}

// library is what the library makes of a name in each style.
func library(name string, mode Mode, llvm bool) (string, error) {
	d := NewDemangler(mode)
	if llvm {
		d = NewLLVMDemangler(mode)
	}
	want, err := demangle.ToString(name, d.options...)
	if llvm {
		want = spaced(want)
	}
	return want, err
}

// sameAsLibrary compares a name in all styles and says in how many it was taken.
func sameAsLibrary(t *testing.T, p *itanium, name string) (taken int) {
	for _, mode := range []Mode{Full, Templates} {
		got, ok := p.demangle(name, mode == Templates)
		if !ok {
			continue
		}
		taken++
		for _, llvm := range []bool{false, true} {
			if want, err := library(name, mode, llvm); err != nil || got != want {
				t.Errorf("%s, %s, llvm %v:\ngot  %s\nwant %s (%v)", name, mode, llvm, got, want, err)
			}
		}
	}
	return taken
}

func itaniumNames(t testing.TB) []string {
	text, err := os.ReadFile("testdata/itanium.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(text))
	for i := range names {
		names[i], _ = cutClones(names[i])
	}
	return names
}

// TestItaniumIsAsTheLibrary holds names of ceph-osd, and each of them cut short.
func TestItaniumIsAsTheLibrary(t *testing.T) {
	var p itanium
	taken, names := 0, itaniumNames(t)
	for _, name := range names {
		taken += sameAsLibrary(t, &p, name)
		for cut := range min(len(name), 120) {
			sameAsLibrary(t, &p, name[:cut])
		}
	}
	if taken < len(names) { // of twice as many; the list favours what is left out
		t.Errorf("%d of %d names were taken", taken, 2*len(names))
	}
}

// TestItaniumIsBounded feeds names whose text grows without end.
func TestItaniumIsBounded(t *testing.T) {
	var p itanium
	double := "_Z1fI1aIiEE" // each argument twice the one before
	for i := range 40 {
		double += fmt.Sprintf("1bIS%s_S%s_E", seq(i+1), seq(i+1))
	}
	for _, name := range []string{"_Z1f" + strings.Repeat("P", 20_000) + "i", double,
		"_Z" + strings.Repeat("N", 20_000), "_Z1f" + strings.Repeat("1aI", 9_000),
		"_Z1fIJ" + strings.Repeat("i", 9_000) + "EEv" + strings.Repeat("DpT_", 5_000)} {
		if got, ok := p.demangle(name, false); ok {
			t.Errorf("%.20s…: %d bytes", name, len(got))
		}
		if cap(p.arena) > 4*maxItaniumArena || cap(p.out) > 8*maxItaniumText {
			t.Errorf("%.20s…: %d and %d bytes of memory", name, cap(p.arena), cap(p.out))
		}
	}
}

// seq is the number of a substitution as it is written.
func seq(n int) string {
	if n == 0 {
		return ""
	}
	return strings.ToUpper(strconv.FormatInt(int64(n-1), 36))
}

func FuzzItanium(f *testing.F) {
	for _, name := range itaniumNames(f) {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		var p itanium
		if len(name) <= maxMangled {
			sameAsLibrary(t, &p, name)
		}
	})
}

func BenchmarkItanium(b *testing.B) {
	names := itaniumNames(b)
	size := 0
	for _, name := range names {
		size += len(name)
	}
	for _, c := range []struct {
		name    string
		library bool
	}{{"own", false}, {"library", true}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			d := NewDemangler(Full)
			for b.Loop() {
				for _, name := range names {
					if c.library {
						demangle.ToString(name, d.options...)
					} else {
						d.core(&d.fast, name)
					}
				}
			}
		})
	}
}
