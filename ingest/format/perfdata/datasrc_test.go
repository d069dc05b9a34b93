package perfdata

import "testing"

// TestLevel has values of data_src as processors record them, with the level that perf prints.
func TestLevel(t *testing.T) {
	for _, c := range []struct {
		name string
		src  DataSource
		want string
	}{
		{name: "nothing", want: "N/A"},
		{name: "not available, as perf.data files of events without it have it", src: 0x5080021, want: "N/A"},
		{name: "L1 hit with its number", src: 0x1<<33 | (0x2|0x8)<<5 | 2, want: "L1 hit"},
		{name: "line fill buffer", src: 0xc<<33 | (0x2|0x10)<<5, want: "LFB/MAB hit"},
		{name: "RAM, before there were numbers", src: (0x2 | 0x80) << 5, want: "Local RAM hit"},
		{name: "a miss of L3", src: 0x3<<33 | (0x4|0x40)<<5, want: "L3 miss"},
		{name: "remote RAM", src: 0xd<<33 | 1<<37 | 0x2<<5, want: "Remote RAM hit"},
		{name: "two levels", src: (0x2 | 0x8 | 0x20) << 5, want: "L1 or L2 hit"},
		{name: "an unknown number", src: 0xf<<33 | 0x1<<5, want: "N/A"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.src.Level(); got != c.want {
				t.Errorf("%#x: %s, want %s", uint64(c.src), got, c.want)
			}
			if kept := (c.src & LevelBits).Level(); kept != c.want {
				t.Errorf("by LevelBits: %s", kept)
			}
		})
	}
}
