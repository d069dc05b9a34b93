package report

import "testing"

// TestLLVMDemangler compares with the output of llvm-cxxfilt of LLVM 14.
func TestLLVMDemangler(t *testing.T) {
	d := NewLLVMDemangler(Full)
	for name, want := range map[string]string{
		"main":                  "main",
		"_Z3foov":               "foo()",
		"_Z3foov.cold":          "foo() (.cold)",
		"_Z3foov.part.0.isra.1": "foo() (.part.0.isra.1)",
		"_Z3foov.llvm.123":      "foo() (.llvm.123)",
		"_ZdaPvm@CXXABI_1.3.9":  "_ZdaPvm@CXXABI_1.3.9",
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
