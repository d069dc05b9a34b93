package procmaps

import "testing"

func TestParseModule(t *testing.T) {
	for _, c := range []struct {
		name, line string
		want       Module
		bad        bool
	}{
		{name: "loaded", line: "ext4 1040384 1 - Live 0xffffffffc0a31000\n",
			want: Module{Name: "ext4", Addr: 0xffffffffc0a31000, Size: 1040384}},
		{name: "tainted", line: "zfs 4096 0 spl,znvpair, Live 0xffffffffc0000000 (POE)",
			want: Module{Name: "zfs", Addr: 0xffffffffc0000000, Size: 4096}},
		{name: "hidden", line: "ext4 8192 1 - Live 0x0000000000000000",
			want: Module{Name: "ext4", Size: 8192}},
		{name: "short", line: "ext4 8192 1 - Live", bad: true},
		{name: "no size", line: "ext4 big 1 - Live 0xffffffffc0a31000", bad: true},
		{name: "no address", line: "ext4 8192 1 - Live here", bad: true},
		{name: "path", line: "../../etc 8192 1 - Live 0xffffffffc0a31000", bad: true},
		{name: "parent", line: ".. 8192 1 - Live 0xffffffffc0a31000", bad: true},
		{name: "empty", bad: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := ParseModule(c.line)
			if ok == c.bad || ok && got != c.want {
				t.Errorf("ParseModule(%q) = %+v, %v", c.line, got, ok)
			}
		})
	}
}
