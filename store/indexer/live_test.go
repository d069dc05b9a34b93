package indexer

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"symbolize/ingest/addr"
	"symbolize/store"
)

// TestAgainstNM compares names with the output of nm for files of this machine: at the address of
// each function that nm lists, the table must have one of nm's names for it. SYMBOLIZE_LIVE=1 runs
// it.
func TestAgainstNM(t *testing.T) {
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SYMBOLIZE_LIVE is not set: files of this machine are not looked at")
	}
	if _, err := exec.LookPath("nm"); err != nil {
		t.Skip("no nm here")
	}
	compared := 0
	for _, path := range []string{
		"/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/lib/x86_64-linux-gnu/libm.so.6",
		"/bin/bash", "../../fixtures/objects/bin/fixed",
	} {
		if _, err := os.Stat(path); err != nil {
			t.Logf("%s is not here", path)
			continue
		}
		m := newMemory()
		m.index(t, Options{}, path)
		for id := range m.ids {
			o := m.object(t, id)
			for i, s := range o.Sources {
				switch s.Kind {
				case store.Symtab:
					compared += m.compareNM(t, o, i, path)
				case store.Dynsym:
					compared += m.compareNM(t, o, i, "-D", path)
				}
			}
		}
	}
	if compared < 1000 {
		t.Errorf("only %d functions compared", compared)
	}
}

// compareNM compares one source with the output of nm, and returns how many addresses it has.
func (m *memory) compareNM(t *testing.T, o *store.Manifest, source int, args ...string) int {
	t.Helper()
	args = append([]string{"--defined-only", "--without-symbol-versions"}, args...)
	out, err := exec.Command("nm", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[addr.Addr][]string)
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) != 3 || !strings.Contains("TtWwi", f[1]) {
			continue
		}
		a, err := strconv.ParseUint(f[0], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		names[addr.Addr(a)] = append(names[addr.Addr(a)], f[2])
	}
	addrs := make([]addr.Addr, 0, len(names))
	for a := range names {
		addrs = append(addrs, a)
	}
	slices.Sort(addrs)
	table, err := m.Open(o, source)
	if err != nil {
		t.Fatal(err)
	}
	misses := 0
	for _, a := range addrs {
		hit, _, err := lookupOne(table, a)
		if err != nil {
			t.Fatal(err)
		}
		name := ""
		if hit.OK {
			if name, err = table.Name(hit.Name); err != nil {
				t.Fatal(err)
			}
			name, _, _ = strings.Cut(name, "@")
		}
		if !slices.Contains(names[a], name) {
			if misses++; misses < 10 {
				t.Logf("%v %#x: %q, nm has %q", args, a, name, names[a])
			}
		}
	}
	// Labels that nm lists and perf does not: hidden ones, and those in data.
	if misses > 1+len(addrs)/200 {
		t.Errorf("%v: %d of %d addresses differ", args, misses, len(addrs))
	}
	return len(addrs)
}
