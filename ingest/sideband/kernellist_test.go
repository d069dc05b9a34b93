package sideband

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/elfbuild"
)

// TestCheckKallsyms: a list of the capture's kernel has the distance from the reference symbol to the
// end of the code, wherever the kernel was loaded; of another kernel it is refused.
func TestCheckKallsyms(t *testing.T) {
	const (
		own   = "00112233445566778899aabbccddeeff00112233"
		other = "33221100ffeeddccbbaa99887766554433221100"
		list  = "ffffffff81000000 T _stext\nffffffff81000000 T _text\nffffffff81000140 T do_work\n" +
			"ffffffff81800123 T _etext\n"
		moved = "ffffffff9a200000 T _stext\nffffffff9a200000 T _text\nffffffff9a200140 T do_work\n" +
			"ffffffff9aa00123 T _etext\nffffffffc0000000 t f\t[ext4]\n"
		longer = "ffffffff81000000 T _stext\nffffffff81000000 T _text\nffffffff81000150 T do_work\n" +
			"ffffffff81800223 T _etext\n"
		bare  = "ffffffff81000000 T _text\nffffffff81000140 T do_work\n"
		short = "c1000000 T _stext\nc1000000 T _text\nc1800123 T _etext\n"
	)
	parse := func(text string) buildid.ID {
		id, err := buildid.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	note := func(text string) string {
		return string((&elfbuild.File{}).BuildIDNote(parse(text).Bytes()))
	}
	for _, c := range []struct {
		name   string // of the case
		list   string
		path   string // "" for kallsyms
		notes  string // beside the list
		start  uint64 // of the capture's kernel; 0 for 0xffffffff81000000
		size   uint64 // of its mapping; 0 for 0x800123
		hidden bool   // the capture has no address of the kernel
		module uint64 // another mapping of the capture
		want   string // in the error; "" for none
	}{
		{name: "same boot", list: list},
		{name: "another boot", list: moved},
		{name: "up to _edata", list: list + "ffffffff81900000 D _edata\n", size: 0x900000},
		{name: "without an end", list: "ffffffff81000000 T _stext\n" + bare},
		{name: "up to the next module", list: longer, size: 0x1000000, module: 0xffffffff82000000},
		{name: "no end was known", list: longer, size: 0x3f000000},
		{name: "another size", list: longer, want: "its _etext is 0x800223 after _stext, the capture's 0x800123"},
		{name: "another boot, another size", list: moved, size: 0x800124, want: "_etext"},
		{name: "32 bits", list: short, want: "its addresses have 32 bits"},
		{name: "32 bits, a hidden kernel", list: short, hidden: true, want: "32 bits"},
		{name: "a hidden kernel", list: longer, hidden: true},
		{name: "a recording of 32 bits", list: list, start: 0xc1000000, want: "64 bits, the capture's 32"},
		{name: "no reference symbol", list: bare, want: "no symbol _stext"},
		{name: "its build ID beside it", list: longer, notes: own},
		{name: "another build ID beside it", list: list, notes: other, want: "its build ID is " + other},
		{name: "in perf's cache", list: list, path: other + "/kallsyms", want: "its build ID is " + other},
		{name: "in its place in perf's cache", list: longer, path: own + "/kallsyms"},
		{name: "its release", list: list, path: "kallsyms-6.1.0-13-amd64"},
		{name: "another release", list: list, path: "System.map-6.1.0-14-amd64",
			want: "its name has the release 6.1.0-14-amd64, the capture comes from 6.1.0-13-amd64"},
		{name: "another release, packed", list: string(elfbuild.Pack("zstd", []byte(list))),
			path: "kallsyms-6.1.0-14-amd64.zst", want: "its name has the release 6.1.0-14-amd64, the capture comes from"},
		{name: "another size, packed", list: string(elfbuild.Pack("xz", []byte(longer))), path: "kallsyms.xz",
			want: "_etext is"},
		{name: "no release", list: list, path: "kallsyms-2026-11-27.txt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kallsyms")
			if c.path != "" {
				path = filepath.Join(t.TempDir(), c.path)
			}
			files := map[string]string{path: c.list}
			if c.notes != "" {
				files[filepath.Join(filepath.Dir(path), "notes")] = note(c.notes)
			}
			for name, data := range files {
				if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700),
					os.WriteFile(name, []byte(data), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			sb := New()
			sb.Host.Arch, sb.Host.Release = "x86_64", "6.1.0-13-amd64"
			if k := &sb.Kernel; !c.hidden {
				k.Mapped, k.symbol, k.address = true, "_stext", cmp.Or(c.start, 0xffffffff81000000)
				k.end = k.address + cmp.Or(c.size, 0x800123)
			}
			if c.module != 0 {
				sb.changes.insert(0, change{kind: changeKernelMapping, a: c.module, b: c.module + 0x1000})
			}
			list, err := ReadKernelList(path)
			if err == nil {
				err = sb.Kernel.CheckKallsyms(list, parse(own))
			}
			var refused *KernelListError
			if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &refused) ||
				!strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if _, err := ReadKernelList("absent"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a list that is not there: %v", err)
	}
}
