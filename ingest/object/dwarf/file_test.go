package dwarf

import (
	"os"
	"strings"
	"testing"
	"time"
)

// TestFileCost prints the cost of reading a big file: time of each part and the peak memory of
// the process. It asserts only that nothing is lost.
func TestFileCost(t *testing.T) {
	path := os.Getenv("SYMBOLIZE_DWARF_FILE")
	if path == "" {
		t.Skip("SYMBOLIZE_DWARF_FILE names no file")
	}
	start := time.Now()
	opts := Options{Name: path}
	d := New(loadLive(t, path, false, &opts), opts)
	t.Logf("load %v", time.Since(start))
	start = time.Now()
	d.scan()
	t.Logf("scan %v, %d units", time.Since(start), len(d.units.list))
	var funcs, inlines, rows, dead int
	start = time.Now()
	err := d.Walk(t.Context(), 2, func(u *Unit) error {
		funcs += len(u.Functions)
		for _, f := range u.Functions {
			inlines += len(f.Inlines)
		}
		for _, s := range u.Sequences {
			rows += len(s.Rows)
		}
		dead += u.Dead
		for _, p := range u.Problems {
			t.Error(p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("walk %v: %d functions, %d inlined calls, %d rows, %d dead", time.Since(start),
		funcs, inlines, rows, dead)
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("no /proc")
	}
	for l := range strings.Lines(string(status)) {
		if strings.HasPrefix(l, "VmHWM") || strings.HasPrefix(l, "RssAnon") {
			t.Log(strings.TrimSpace(l))
		}
	}
}
