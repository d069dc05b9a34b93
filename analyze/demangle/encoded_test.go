package demangle

import (
	"strings"
	"testing"
)

// TestEncoded has symbols of OCaml 4.13 and 5.3, and of GHC 9.0, and symbols of C that look like
// them.
func TestEncoded(t *testing.T) {
	for symbol, want := range map[string]string{
		"camlO__ins_84":                           "O.ins",
		"camlO.ins_84":                            "O.ins",
		"camlO__f$27_98":                          "O.f'",
		"camlO__$2b$2b_81":                        "O.(++)",
		"camlO__fun_184":                          "O.fun_184",
		"camlO__entry":                            "O.entry",
		"camlO.go_2_84_code":                      "O.go_2",
		"camlStdlib__List__map_487":               "Stdlib.List.map",
		"camlStdlib__List.map_487":                "Stdlib.List.map",
		"camlDune__exe__Main__run_12":             "Main.run",
		"camlDune__exe__Main.run_12":              "Main.run",
		"camlO__a__b_7":                           "O.a__b",
		"camlO__anon_fn$5bo$2eml$3a3$5d_9":        "O.anon_fn[o.ml:3]",
		"camlO__code_begin":                       "",
		"camlO__frametable":                       "",
		"camlO__$zz_1":                            "",
		"camlO__$ff_1":                            "",
		"camlO":                                   "",
		"caml_alloc_small":                        "",
		"camlO__1":                                "",
		"Main_zdwcollatzz_info":                   "Main.$wcollatz",
		"Main_sizze_info":                         "Main.size",
		"Main_collatzzzq_info":                    "Main.collatz'",
		"Main_zpzpzp_info":                        "Main.+++",
		"Main_zdwzpzpzp_info":                     "Main.$w+++",
		"Main_main_info":                          "Main.main",
		"Main_zdwzdsgo16_slow":                    "Main.$w$sgo16",
		"ZCMain_main_info":                        ":Main.main",
		"base_GHCziBase_map_info":                 "GHC.Base.map",
		"ghczmprim_GHCziTypes_ZC_con_info":        "GHC.Types.:",
		"ghczmprim_GHCziTuple_Z3T_con_info":       "GHC.Tuple.(,,)",
		"ghczmprim_GHCziTuple_Z2H_con_info":       "GHC.Tuple.(#,#)",
		"ghczmprim_GHCziTuple_Z0T_con_info":       "GHC.Tuple.()",
		"HUnitzm1zi6_TestziHUnit_run_info":        "Test.HUnit.run",
		"DataziMapziInternal_insert_info":         "Data.Map.Internal.insert",
		"Main_z3bbU_info":                         "Main.λ",
		"Main_go_s2Xc_info":                       "Main.go",
		"containerszm0zi6_DataziMap_zdwf_r1_info": "Data.Map.$wf",
		"stg_ap_0_fast":                           "",
		"s4oL_info":                               "",
		"XML_get_info":                            "",
		"Foo_size_info":                           "",
		"Foo_zero_info":                           "",
		"Foo_buzz_info":                           "",
		"Main_z_info":                             "",
		"Main_zzzzzz":                             "",
		"get_info":                                "",
		"Main_Z99T_info":                          "",
		"Main_zffffffffU_info":                    "",
		"_info":                                   "",
	} {
		for _, mode := range []Mode{Simple, Templates, Full} {
			shown := want
			if want == "" {
				shown = symbol
			}
			if got := New(mode).Name(symbol); got != shown {
				t.Errorf("%s %v: %s, want %s", symbol, mode, got, shown)
			}
		}
		if got := New(None).Name(symbol); got != symbol {
			t.Errorf("%s: %s with none", symbol, got)
		}
		if got := NewLLVM(Full).Name(symbol); got != symbol {
			t.Errorf("%s: %s by LLVM", symbol, got)
		}
	}
}

// FuzzEncoded: names of any kind are decoded or left, and never panic.
func FuzzEncoded(f *testing.F) {
	for _, s := range []string{"camlO.f$2b_1", "Main_z3bbU_info", "ghczmprim_GHCziTuple_Z3T_con_info"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if name, ok := Encoded(s); ok && (name == "" || !strings.Contains(name, ".")) {
			t.Errorf("%q is %q", s, name)
		}
	})
}
