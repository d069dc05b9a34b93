package demangle

import "testing"

// Names that the library alone reads otherwise than other demanglers: it gives the right name, or
// none.
func TestRustZeroLengths(t *testing.T) {
	d := New(Full)
	for _, c := range []struct{ name, mangled, want string }{
		{"closure in a closure", "_RNCNCNvCs1_1a1f00", "a::f::{closure#0}::{closure#0}"},
		{"type in a closure", "_RINvCs1_1a1gNtNCNvB2_4main05InnerEB2_",
			"a::g::<a::main::{closure#0}::Inner>"},
		{"references before and behind", "_RINvCs1_1a1gNtNCNvB2_4main05InnerNtB2_1TBv_Ba_E",
			"a::g::<a::main::{closure#0}::Inner, a::T, a::T, a::main::{closure#0}::Inner>"},
		{"a reference that gets longer", "_RINvCs1_1a1gNtNCNvB2_4main05InnerNtB2_25" +
			"aaaaaaaaaaaaaaaaaaaaaaaaaNtB2_1UB11_NtB2_1VB1c_E",
			"a::g::<a::main::{closure#0}::Inner, a::aaaaaaaaaaaaaaaaaaaaaaaaa, a::U, a::U, a::V, a::V>"},
		{"constants, traits, functions",
			"_RINvCs1_1a1gNCNvB2_1f0Kj10_Kln20_DNtB2_1Tp1AbEL_FUK3aptbEuRL_eE", "a::g::" +
				"<a::f::{closure#0}, 16, -32, dyn a::T<A = bool>, unsafe extern \"apt\" fn(bool), &str>"},
		{"name that ends in 0 and a digit", "_RNvNCNvCs1_1a1f03g01", "a::f::{closure#0}::g01"},
		{"digits in a name", "_RNvCs1_1a4f010", "a::f010"},
		{"constructor", "_RINvCs1_1a1gNcNtINtB2_1RbE2Ok0EB2_", "a::g::<a::R<bool>::Ok>"},
		{"constructor at the end", "_RNcNtCs1_1a2Ok0", "a::Ok"},
		{"damaged", "_RNCNCNvCs1_1a1f00E", "_RNCNCNvCs1_1a1f00E"},
		{"reference ahead", "_RINvCs1_1a1gNCNvB2_4main05InnerBz_E",
			"_RINvCs1_1a1gNCNvB2_4main05InnerBz_E"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := d.Name(c.mangled); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

func TestUnresolvedNames(t *testing.T) {
	const same = "the mangled name"
	d := New(Full)
	for _, c := range []struct{ name, mangled, want string }{
		{"clang, template in the scope", "_ZN4llvm10checkedAddIiEENSt9enable_ifIXsr3std9is_signed" +
			"IT_EE5valueENS_8OptionalIS2_EEE4typeES2_S2_", same},
		{"clang, template first", "_Z2f1I1AEN4std23eifIXsr4is_aIT_EE5valueES3_E4typeES3_", same},
		{"clang, two scopes, the second has it", "_Z1fI1AENSt2eiIXaantsr3std2isIT_E5valuesr3std2" +
			"ofIS1_EE5valueES0_E4typeES1_", same},
		{"clang or gcc", "_Z2f3I1AEN4std23eifIXsrNT_2inI1PEE5valueES3_E4typeES3_S5_S3_PS5_S9_", same},
		{"clang or gcc, no template", "_Z2f1I1AEN4std23eifIXsrNT_1BE5valueES3_E4typeES3_1PS3_PS6_S7_",
			same},
		{"no substitution behind", "_Z1fI1AEN4std23eifIXsr4is_aIT_EE5valueEvE4typeEi",
			"std2::eif<is_a<A>::value, void>::type f<A>(int)"},
		{"template last", "_Z2f7I1AEDTcmclsr4std2E2dvIT_EEfp_ES1_P1PS4_",
			"decltype ((std2::dv<A>()),{parm#1}) f7<A>(A, P*, P*)"},
		{"a parameter as scope", "_Z2f9IN4std24is_aE1AENS0_3eifIXsrT_IT0_E5valueES5_E4typeES5_1P" +
			"S5_PS9_SA_", "std2::eif<std2::is_a<A>::value, A>::type f9<std2::is_a, A>(A, P, A, P*, P*)"},
		{"within an identifier", "_ZN3foo7srNamesE1PS0_", "foo::srNames(P, P)"},
		{"numbers within an identifier", "_ZN3foo8sr1aIxyzE1PS0_", "foo::sr1aIxyz(P, P)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want == same {
				c.want = c.mangled
			}
			if got := d.Name(c.mangled); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// A name that was made clear is clear, and no longer than its parts can grow.
func FuzzClearRust(f *testing.F) {
	f.Add("_RNCNCNvCs1_1a1f00")
	f.Add("_RINvCs1_1a1gNtNCNvB2_4main05InnerNtB2_1TBv_Ba_E")
	f.Add("_RINvCs1_1a1gNCNvB2_1f0Kj10_Kln20_DNtB2_1Tp1AbEL_FUK3aptbEuRL_eE")
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > maxMangled || len(s) < 2 || s[:2] != "_R" {
			return
		}
		clear, ok := clearRust(s)
		if !ok {
			return
		}
		if len(clear) > 3*len(s) {
			t.Errorf("%d bytes became %d", len(s), len(clear))
		}
		if again, ok := clearRust(clear); !ok || again != clear {
			t.Errorf("%q, again %q %v", clear, again, ok)
		}
	})
}
