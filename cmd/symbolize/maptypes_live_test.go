//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"symbolize/analyze/annotate"
)

// accessed are the members that the lines of fixtures/src/types/maps.bpf.c access.
var accessed = map[string][]string{
	"if (key > limit)":                        {"unsigned int"},
	"seen[key]++;":                            {"unsigned long long"},
	"total.calls++;":                          {"struct stat.calls"},
	"total.hist[key & 7] += key;":             {"struct stat.hist[]"},
	"s->calls++;":                             {"struct stat.calls", "struct stat.last"}, // what a loop behind it begins with
	"s->last++;":                              {"struct stat.last"},
	"s->calls += key;":                        {"struct stat.calls"},
	"s->last = key;":                          {"struct stat.last"},
	"s->last = v;":                            {"struct stat.last"},
	"s->hist[v & 7]++;":                       {"struct stat.hist[]"},
	"m->c += key;":                            {"struct odd.c"},
	"__sync_fetch_and_add(&m->b, 1);":         {"struct odd.b"},
	"s->hist[(key + i) & 7] += s->last++;":    {"struct stat.hist[]", "struct stat.last"},
	"s = bpf_map_lookup_elem(&by_cpu, &key);": {"struct stat *"}, // where a processor's value is
}

// TestLiveMapTypes: the instructions of a program in this kernel access what its lines say, of maps of many kinds and of
// global variables. Hardened code, with lines that the kernel moves, accesses the same in the same order.
func TestLiveMapTypes(t *testing.T) {
	needLive(t, "clang")
	if runtime.GOARCH != "amd64" {
		t.Skip("SKIPPED: types of BPF programs are known on x86-64 only")
	}
	const setting = "/proc/sys/net/core/bpf_jit_harden"
	before, err := os.ReadFile(setting)
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	source, err := os.ReadFile("../../fixtures/src/types/maps.bpf.c")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(source), "\n")
	object := filepath.Join(t.TempDir(), "maps.o")
	compileBPF(t, "types/maps.bpf.c", object)
	defer restoreLater(t, setting, string(before))()
	var plain []string
	for _, harden := range []string{"0", "2"} {
		if err := os.WriteFile(setting, []byte(harden), 0); err != nil {
			t.Skipf("SKIPPED: %v", err)
		}
		seen := make(map[string][]string)
		var all []string
		for _, x := range loadedAccesses(t, object, "maps") {
			name, _ := strings.CutSuffix(x.Access, " [BTF]")
			all = append(all, name)
			if x.Line == 0 {
				continue
			}
			if line := strings.TrimSpace(lines[x.Line-1]); !slices.Contains(seen[line], name) {
				seen[line] = append(seen[line], name)
			}
		}
		if harden != "0" {
			if !slices.Equal(all, plain) {
				t.Errorf("hardened: %q, others %q", all, plain)
			}
			continue
		}
		plain = all
		for _, list := range seen {
			slices.Sort(list)
		}
		if !reflect.DeepEqual(seen, accessed) {
			t.Errorf("%q, want %q", seen, accessed)
		}
		t.Logf("%d instructions access values of maps", len(all))
	}
}

// loadedAccesses loads an object's program, and returns the instructions of it and of its functions that access known
// types, by name of function and address.
func loadedAccesses(t *testing.T, object, program string) (list []annotate.Inst) {
	t.Helper()
	bundle := filepath.Join(t.TempDir(), "bundle")
	p := loadEach(t, object)[program]
	if p == nil {
		t.Skip("SKIPPED: the kernel refuses the program")
	}
	runMain(t, "capture", "-o", bundle, "--duration", "1ms")
	info, err := p.Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := info.ID()
	var an annotate.Annotation
	text := runMain(t, "--store", bundle+".store", "annotate", "-q", "--types", "--format", "json", bundle,
		fmt.Sprintf("id:%d", id))
	if err := json.Unmarshal([]byte(text), &an); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(an.Functions, func(a, b annotate.Function) int { return strings.Compare(a.Name, b.Name) })
	for i := range an.Functions {
		for _, x := range an.Functions[i].Instructions {
			if strings.HasSuffix(x.Access, " [BTF]") {
				list = append(list, x)
			}
		}
	}
	return list
}
