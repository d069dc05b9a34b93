package demangle

import (
	"strconv"
	"strings"
	"testing"

	"symbolize/fixtures/profilebuild"
	"symbolize/ingest/texts"
)

func TestDemangle(t *testing.T) {
	long := "_ZN" + strings.Repeat("3abc", 10_000) + "Ev"
	tests := []struct{ system, simple, templates, full string }{
		{system: "main", simple: "main", templates: "main", full: "main"},
		{system: "_ZN3foo3barIiEEvT_", simple: "foo::bar", templates: "foo::bar<int>",
			full: "void foo::bar<int>(int)"},
		{system: "_ZN3foo3barEi.cold", simple: "foo::bar [clone .cold]",
			templates: "foo::bar [clone .cold]",
			full:      "foo::bar(int) [clone .cold]"},
		{system: "_ZN3foo3barEi.isra.0.part.1", simple: "foo::bar [clone .isra.0.part.1]",
			templates: "foo::bar [clone .isra.0.part.1]",
			full:      "foo::bar(int) [clone .isra.0.part.1]"},
		{system: "_ZN3foo3barEi.llvm.123456", simple: "foo::bar", templates: "foo::bar",
			full: "foo::bar(int)"},
		{system: "_ZN3foo3barEi.llvm.12.cold", simple: "foo::bar [clone .cold]",
			templates: "foo::bar [clone .cold]",
			full:      "foo::bar(int) [clone .cold]"},
		{system: "_ZdaPvm@CXXABI_1.3.9", simple: "operator delete[]@CXXABI_1.3.9",
			templates: "operator delete[]@CXXABI_1.3.9",
			full:      "operator delete[](void*, unsigned long)@CXXABI_1.3.9"},
		{system: "_ZNSaIcEC1Ev@plt", simple: "std::allocator::allocator@plt",
			templates: "std::allocator<char>::allocator@plt",
			full:      "std::allocator<char>::allocator()@plt"},
		{system: "memcpy@@GLIBC_2.14", simple: "memcpy@@GLIBC_2.14",
			templates: "memcpy@@GLIBC_2.14", full: "memcpy@@GLIBC_2.14"},
		{system: "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
			simple:    "core::fmt::Formatter::pad",
			templates: "core::fmt::Formatter::pad",
			full:      "core::fmt::Formatter::pad"},
		{system: "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.llvm.77",
			simple:    "core::fmt::Formatter::pad",
			templates: "core::fmt::Formatter::pad", full: "core::fmt::Formatter::pad"},
		{system: "_RNvCs15kBYyAo9fc_7mycrate7example", simple: "mycrate::example",
			templates: "mycrate::example",
			full:      "mycrate::example"},
		{system: "main.(*T).Foo[...]", simple: "main.(*T).Foo[...]",
			templates: "main.(*T).Foo[...]", full: "main.(*T).Foo[...]"},
		{system: "_Zzz", simple: "_Zzz", templates: "_Zzz", full: "_Zzz"},
		{system: "_Renamed", simple: "_Renamed", templates: "_Renamed", full: "_Renamed"},
		{system: "a\x1b[31m\nb\xff", simple: "a?[31m?b?", templates: "a?[31m?b?",
			full: "a?[31m?b?"},
		{system: long, simple: long, templates: long, full: long},
		{full: ""},
	}
	for _, tt := range tests {
		for mode, want := range map[Mode]string{Simple: tt.simple, Templates: tt.templates,
			Full: tt.full,
			None: texts.Printable(tt.system)} {
			d := New(mode)
			for range 2 { // made, then remembered
				if got := d.Name(tt.system); got != want {
					t.Errorf("%s of %.60q: %.80q, want %.80q", mode, tt.system, got, want)
				}
			}
		}
	}
}

// TestWarm: names done ahead are the same, and a profile's are all done.
func TestWarm(t *testing.T) {
	p := profilebuild.Random(3, profilebuild.Size{Objects: 9, Functions: 900, Locations: 1800,
		Stacks: 300, Depth: 6})
	warm, cold := New(Simple), New(Simple)
	warm.Warm(p)
	for _, f := range p.Names.Functions {
		if _, ok := warm.cache[f.SystemName]; !ok {
			t.Fatalf("%s is not done", f.SystemName)
		}
		if got, want := warm.Name(f.SystemName), cold.Name(f.SystemName); got != want {
			t.Fatalf("%s is %s, want %s", f.SystemName, got, want)
		}
	}
}

// TestDemangleBounded: a short name that grows by substitution stays bounded.
func TestDemangleBounded(t *testing.T) {
	name := "_Z1fI1aE"
	for range 40 {
		name = "_Z1fI" + strings.Repeat("S_", 3) + name[2:] + "E"
	}
	for _, mode := range []Mode{Simple, Templates, Full} {
		if got := New(mode).Name(name); len(got) > 1<<maxDemangledShift+len(name) {
			t.Errorf("%s: %d bytes", mode, len(got))
		}
	}
}

func FuzzDemangle(f *testing.F) {
	for _, s := range []string{"_ZN3foo3barIiEEvT_", "_RNvCs15kBYyAo9fc_7mycrate7example",
		"_ZN1a17h0123456789abcdefE.x", "_Z@", "_Z.llvm."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for mode := Simple; mode <= None; mode++ {
			name := New(mode).Name(s)
			if name != texts.Printable(name) {
				t.Errorf("%s of %q is not printable: %q", mode, s, name)
			}
		}
	})
}

func TestParseMode(t *testing.T) {
	for m := Simple; m <= None; m++ {
		if got, err := ParseMode(m.String()); got != m || err != nil {
			t.Errorf("%s: %v, %v", m, got, err)
		}
	}
	if _, err := ParseMode("some"); err == nil {
		t.Error("no error for an unknown mode")
	}
}

func BenchmarkDemangle(b *testing.B) {
	names := make([]string, 1000)
	for i := range names {
		n := strconv.Itoa(i)
		names[i] = "_ZN4room" + strconv.Itoa(len(n)+1) + "f" + n + "ISt6vectorIiSaIiEEEEvT_"
	}
	b.SetBytes(int64(len(strings.Join(names, ""))))
	for b.Loop() {
		d := New(Simple)
		for _, n := range names {
			d.Name(n)
		}
	}
}
