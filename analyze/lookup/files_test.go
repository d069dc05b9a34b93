package lookup

import "testing"

func TestSplitQuery(t *testing.T) {
	for line, want := range map[string]string{
		"a 1": "a|1", "  a   0x1  x": "a|0x1", `"a b" 1`: "a b|1", "'a\"b' 1": `a"b|1`,
		"CODE a 1": "a|1", `CODE  "a" 1`: "a|1", "CODE 1": "", "CODE": "", "a": "", "": "",
		`"a 1`: "", `"" 1`: "", `"a"`: "",
	} {
		file, address, ok := splitQuery([]byte(line))
		got := ""
		if ok {
			got = file + "|" + string(address)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
