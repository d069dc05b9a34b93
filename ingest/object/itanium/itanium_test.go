package itanium

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/ianlancetaylor/demangle"
)

// allOptions are the combinations that reports use.
var allOptions = []Options{
	{},
	{LLVM: true},
	{NoParams: true, NoEnclosingParams: true},
	{NoParams: true, NoEnclosingParams: true, LLVM: true},
	{NoParams: true, NoEnclosingParams: true, NoTemplateParams: true},
	{NoParams: true, NoEnclosingParams: true, NoTemplateParams: true, LLVM: true},
}

// general demangles by the general demangler.
func general(name string, o Options) (string, error) {
	options := []demangle.Option{demangle.NoClones}
	for _, opt := range []struct {
		set bool
		is  demangle.Option
	}{
		{o.NoParams, demangle.NoParams},
		{o.NoEnclosingParams, demangle.NoEnclosingParams},
		{o.NoTemplateParams, demangle.NoTemplateParams},
		{o.LLVM, demangle.LLVMStyle},
	} {
		if opt.set {
			options = append(options, opt.is)
		}
	}
	ast, err := demangle.ToAST(name, options...) // ToString may take it for a name of Rust
	if err != nil {
		return "", err
	}
	return demangle.ASTToString(ast, options...), nil
}

// agree checks a name under all options against the general demangler. It returns how many of
// them were demangled.
func agree(t *testing.T, d *Demangler, name string) int {
	accepted := 0
	for _, o := range allOptions {
		prefix := []byte("x<")
		b, ok := d.Append(prefix, name, o)
		if !bytes.HasPrefix(b, prefix) || !ok && len(b) != len(prefix) {
			t.Fatalf("%s, %+v: %q after %q", name, o, b, prefix)
		}
		if !ok {
			continue
		}
		accepted++
		want, err := general(name, o)
		if err != nil {
			t.Errorf("%s, %+v: %q, the general demangler refuses: %v", name, o, b[2:], err)
		} else if got := string(b[2:]); got != want {
			t.Errorf("%s, %+v:\n got %s\nwant %s", name, o, got, want)
		}
	}
	return accepted
}

func readNames(t testing.TB) []string {
	text, err := os.ReadFile("testdata/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// TestNames compares names of libstdc++, LLVM and Ceph with the general demangler.
func TestNames(t *testing.T) {
	var d Demangler
	accepted, all := 0, 0
	for _, name := range readNames(t) {
		accepted += agree(t, &d, name)
		all += len(allOptions)
	}
	if accepted*100 < all*90 {
		t.Errorf("%d of %d names were left to the general demangler", all-accepted, all)
	}
}

func TestAppend(t *testing.T) {
	for _, test := range []struct {
		name, mangled, want, llvm string
	}{
		{name: "function", mangled: "_Z3fooiPKc", want: "foo(int, char const*)"},
		{name: "data", mangled: "_ZN1a1bE", want: "a::b"},
		{name: "const method", mangled: "_ZNKR1a1bEv", want: "a::b() const &"},
		{name: "constructor", mangled: "_ZN1a1bIiEC2Ev", want: "a::b<int>::b()"},
		{name: "destructor", mangled: "_ZN1a1bIiED0Ev", want: "a::b<int>::~b()"},
		{name: "operator of a template", mangled: "_ZlsIiEvRT_",
			want: "void operator<< <int>(int&)"},
		{name: "conversion", mangled: "_ZNK1acvbEv", want: "a::operator bool() const"},
		{name: "36th substitution", mangled: "_Z1f1a1b1c1d1e1g1h1i1j1k1l1m1n1o1p1q1r1s1t1u1v1w1x" +
			"1y1z2aa2bb2cc2dd2ee2ff2gg2hh2ii2jj2kk2ll2mmSS_SZ_S10_",
			want: "f(a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, " +
				"bb, cc, dd, ee, ff, gg, hh, ii, jj, kk, ll, mm, ee, ll, mm)"},
		{name: "pack", mangled: "_Z1fIJiPcEEvDpOT_", want: "void f<int, char*>(int&&, char*&&)"},
		{name: "collapsed references", mangled: "_Z1fIJRiOcEEvDpOT_",
			want: "void f<int&, char&&>(int&, char&&)"},
		{name: "empty pack", mangled: "_Z1fIJEEvDpT_", want: "void f<>()"},
		{name: "pack in arguments", mangled: "_Z1fIJicEEv1tIJDpT_EE",
			want: "void f<int, char>(t<int, char>)"},
		{name: "pointers to functions", mangled: "_Z1fPFviEM1aKFvvERA5_Kc",
			want: "f(void (*)(int), void (a::*)() const, char const (&) [5])"},
		{name: "closure", mangled: "_ZZ1fvENKUlT_E_clIiEEDaS_", want: ""},
		{name: "closure without parameters", mangled: "_ZZ1fvENKUlvE0_clEv",
			want: "f()::{lambda()#2}::operator()() const", llvm: "f()::'lambda0'()::operator()() const"},
		{name: "unnamed", mangled: "_ZN1aUt_C1Ev", want: ""},
		{name: "thunk", mangled: "_ZThn16_N1a1bEv", want: "non-virtual thunk to a::b()"},
		{name: "covariant thunk", mangled: "_ZTch0_v0_n24_N1a1bEv",
			want: "covariant return thunk to a::b()"},
		{name: "construction vtable", mangled: "_ZTC1a16_1b", want: "construction vtable for b-in-a"},
		{name: "literals", mangled: "_Z1fILin1ELb1EL1e3EEvv", want: "void f<-1, true, (e)3>()"},
		{name: "ABI tag", mangled: "_Z1fB5cxx11v", want: "f[abi:cxx11]()"},
		{name: "anonymous namespace", mangled: "_ZN12_GLOBAL__N_11fEv",
			want: "(anonymous namespace)::f()"},
		{name: "nullptr", mangled: "_Z1fDn", want: "f(decltype(nullptr))", llvm: "f(std::nullptr_t)"},
		{name: "address of a function", mangled: "_Z1fIXadL_Z1gvEEEvv", want: "void f<&g>()",
			llvm: "void f<&g()>()"},
		{name: "expression", mangled: "_Z1fIiEDTcl1gEEv"},
		{name: "rest", mangled: "_Z1fvE"},
		{name: "not mangled", mangled: "main"},
	} {
		var d Demangler
		agree(t, &d, test.mangled)
		for _, llvm := range []bool{false, true} {
			want := test.want
			if llvm && test.llvm != "" {
				want = test.llvm
			}
			b, ok := d.Append(nil, test.mangled, Options{LLVM: llvm})
			if llvm {
				b = bytes.ReplaceAll(b, []byte(">>("), []byte("> >("))
			}
			if ok != (want != "") || string(b) != want {
				t.Errorf("%s: %s: %q, %v, want %q", test.name, test.mangled, b, ok, want)
			}
		}
	}
}

// TestTruncated checks every prefix of names.
func TestTruncated(t *testing.T) {
	var d Demangler
	for i, name := range readNames(t) {
		if i%10 != 0 {
			continue
		}
		for end := range len(name) {
			agree(t, &d, name[:end])
		}
	}
}

// TestNesting checks that hostile names end: nested deeply, or growing without end.
func TestNesting(t *testing.T) {
	var d Demangler
	doubled := "_Z1fI1aIiiE"
	for i := range 30 {
		id := "S" + strings.ToUpper(strconv.FormatInt(int64(i)+1, 36)) + "_"
		doubled += "S0_I" + id + id + "E"
	}
	for _, name := range []string{
		"_Z1f" + strings.Repeat("P", 30000) + "i",
		"_Z" + strings.Repeat("N", 30000),
		"_Z1f" + strings.Repeat("1aI", 9000),
		"_Z" + strings.Repeat("Z", 30000),
		"_Z" + strings.Repeat("Th1_", 9000),
		"_Z1f" + strings.Repeat("FPF", 9000),
		doubled + "Evv",
	} {
		if b, ok := d.Append(nil, name, Options{}); ok {
			t.Errorf("%.20s…, %d bytes: %d bytes", name, len(name), len(b))
		}
	}
}

func FuzzAppend(f *testing.F) {
	for _, name := range readNames(f) {
		f.Add(name)
	}
	var d Demangler
	f.Fuzz(func(t *testing.T, name string) {
		if len(name) > 400 { // the general demangler is not bounded
			return
		}
		agree(t, &d, name)
	})
}

func BenchmarkAppend(b *testing.B) {
	names := readNames(b)
	var size int64
	for _, name := range names {
		size += int64(len(name))
	}
	b.SetBytes(size)
	b.ReportAllocs()
	var d Demangler
	var out []byte
	for b.Loop() {
		for _, name := range names {
			out, _ = d.Append(out[:0], name, Options{LLVM: true})
		}
	}
}
