package demangle

import "testing"

// TestLLVMDemangler compares with the output of llvm-cxxfilt of LLVM 14.
func TestLLVMDemangler(t *testing.T) {
	d := NewLLVM(Full)
	for name, want := range map[string]string{
		"main":                  "main",
		"_Z3foov":               "foo()",
		"_Z3foov.cold":          "foo() (.cold)",
		"_Z3foov.part.0.isra.1": "foo() (.part.0.isra.1)",
		"_Z3foov.llvm.123":      "foo() (.llvm.123)",
		"_ZdaPvm@CXXABI_1.3.9":  "_ZdaPvm@CXXABI_1.3.9",
		"_Z3foov@plt":           "foo()@plt",
		"_ZdaPvm@GLIBCXX@plt":   "_ZdaPvm@GLIBCXX@plt",
		"_Z1fSt6vectorIS_IiSaIiEES0_E": "f(std::vector<std::vector<int, std::allocator<int> >, " +
			"std::allocator<int> >)",
		"_ZN1AIiErsEi":       "A<int>::operator>>(int)",
		"_ZN1AIS_IiEErsEi":   "A<A<int> >::operator>>(int)",
		"_ZN1AIiEptEv":       "A<int>::operator->()",
		"_Z1gM1AFviE":        "g(void (A::*)(int))",
		"_ZN1BIM1AFviEE1hEv": "B<void (A::*)(int)>::h()",
		"_RINvNtCs1_4core3ptr13drop_in_placeINtNtCs2_5alloc3vec3VechEECs3_3std": "core::ptr::" +
			"drop_in_place::<alloc::vec::Vec<u8>>",
	} {
		if got := d.Name(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestSimple: one rule for the short names of C++, Rust and Go.
func TestSimple(t *testing.T) {
	d := New(Simple)
	for name, want := range map[string]string{
		"main":                                            "main",
		"_ZN3foo3barEi":                                   "foo::bar",
		"_ZZ4mainENKUlvE_clEv":                            "main::{lambda#1}",
		"_ZZ3foovENUlvE_4_FUNEv":                          "foo()::{lambda#1}::_FUN",
		"_ZZN3foo3barIiEEvT_ENKUliE0_clEi":                "foo::bar()::{lambda#2}",
		"_ZZZ1fvENKUlvE_clEvENKUlvE0_clEv":                "f()::{lambda#1}::{lambda#2}",
		"_ZZ1fvENKUlPFvvEE_clES0_":                        "f()::{lambda#1}",
		"_ZNKSt8functionIFvvEEclEv":                       "std::function::operator()",
		"_ZSt4sortIPiZ4mainEUliiE_EvT_S2_T0_":             "std::sort",
		"_ZNSt6vectorIiSaIiEE9push_backEOi":               "std::vector::push_back",
		"_ZN12_GLOBAL__N_13fooEv":                         "(anonymous namespace)::foo",
		"_ZN1AIiElsEi":                                    "A::operator<<",
		"_ZN1AIiEptEv":                                    "A::operator->",
		"_ZN1fB5cxx11Ev":                                  "f",
		"_Z3foov.isra.0":                                  "foo [clone .isra.0]",
		"_ZThn168_N1n1AD0Ev":                              "non-virtual thunk to n::A::~A",
		"_ZThn8_NK1AclEi":                                 "non-virtual thunk to A::operator()",
		"_ZTv0_n24_N1A1fEPFviE":                           "virtual thunk to A::f",
		"_ZN4core3ptr13drop_in_place17h0123456789abcdefE": "core::ptr::drop_in_place",
		"_ZN4core3ptr42drop_in_place$LT$alloc..string..String$GT$17h0123456789abcdefE": "core::" +
			"ptr::drop_in_place",
		"_ZN4main4main28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE": "main::main::" +
			"{{closure}}",
		"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar" +
			"17h930b740aa94f1d3aE": "<Test + 'static as foo::Bar>::bar",
		"_RINvNtCs1_4core3ptr13drop_in_placeINtNtCs2_5alloc3vec3VechEECs3_3std": "core::ptr::" +
			"drop_in_place",
		"_RNvXs_Cs1_1aNtB4_1SINtB4_1TjE1f":                    "<a::S as a::T>::f",
		"_RNvMCs1_1aINtB2_1SjE1f":                             "<a::S>::f",
		"_RNCNvCs1_1a4main0":                                  "a::main::{closure#0}",
		"main.F[go.shape.int,go.shape.string]":                "main.F[...]",
		"main.(*T[go.shape.struct { X []int }]).M-fm":         "main.(*T[...]).M-fm",
		"slices.pdqsortCmpFunc[go.shape.struct { A [4]int }]": "slices.pdqsortCmpFunc[...]",
		"main.F[go.shape.int].func1.G[go.shape.uint8]":        "main.F[...].func1.G[...]",
		"main.F[int]":          "main.F[int]",
		"main.F[go.shape.int":  "main.F[go.shape.int",
		"_ZZ1fvENKUlvE_clEv.a": "f()::{lambda#1} [clone .a]",
		// Names of debug information, which are not mangled.
		"std::sort<int*, f()::<lambda(int, int)> >":   "std::sort",
		"n::Box<std::vector<int> >::as<double>":       "n::Box::as",
		"f()::{lambda:12}::operator()<int>":           "f()::{lambda:12}",
		"f()::{lambda:12}::operator()()::L<int>::run": "f()::{lambda:12}::L::run",
		"(anonymous namespace)::f<(1 > 2), '<'>":      "(anonymous namespace)::f",
		"operator< <int>":                             "operator<",
		"n::operator<< <char>":                        "n::operator<<",
		"n::P<int>::operator-><int>":                  "n::P::operator->",
		"operator<=>":                                 "operator<=>",
		"f<&n::operator< >::g":                        "f::g",
		"n::operator int<x>":                          "n::operator int",
		"f<int":                                       "f<int",
		// Angle brackets that are no arguments, as in names of JIT compilers.
		"java.util.List::<init>":       "java.util.List::<init>",
		"py::<module>:/srv/app/run.py": "py::<module>:/srv/app/run.py",
		"Program+<>c::<Main>b__0_0":    "Program+<>c::<Main>b__0_0",
		"LazyCompile:*run <anonymous>": "LazyCompile:*run <anonymous>",
	} {
		if got := d.Name(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for _, mode := range []Mode{Templates, Full, None} {
		const shape = "main.F[go.shape.int]"
		if got := New(mode).Name(shape); got != shape {
			t.Errorf("%v: %s", mode, got)
		}
	}
}

// FuzzSimplify: names of any kind are made no longer, and never panic.
func FuzzSimplify(f *testing.F) {
	f.Add("f()::{lambda(int)#2}::operator() const::{lambda()#1}", false)
	f.Add("main.(*T[go.shape.struct { X []int }]).M", false)
	f.Add("<a::S<fn(u8) -> u8> as a::T<>>::f::<>", true)
	f.Add("n::operator< <f<(1 > 2), '<'> >::{lambda:1}::operator()<int>", false)
	f.Fuzz(func(t *testing.T, name string, rust bool) {
		if got := simplify(name, rust); len(got) > len(name) {
			t.Errorf("%q became %q", name, got)
		}
		if got := cutTemplates(name); len(got) > len(name) {
			t.Errorf("%q became %q", name, got)
		}
	})
}
