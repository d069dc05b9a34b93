package bpfobj

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
)

// TestCiliumTags: cilium/ebpf computes the same SHA-1 for programs without subprograms; of
// others it fills in calls only when it loads them.
func TestCiliumTags(t *testing.T) {
	compared := 0
	for _, name := range []string{"shapes.bpf.o", "count.bpf.o"} {
		o := readFile(t, name)
		spec, err := ebpf.LoadCollectionSpec(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		for prog, p := range spec.Programs {
			if len(p.Instructions.FunctionReferences()) > 0 {
				continue
			}
			for _, tag := range o.named(t, prog).Tags {
				ok, err := p.Instructions.HasTag(tag.String(), binary.LittleEndian)
				if err != nil || !ok {
					t.Errorf("%s: %s: tag %s is none of cilium's: %v", name, prog, tag, err)
				}
				compared++
			}
		}
	}
	if compared < 4 {
		t.Errorf("%d tags compared", compared)
	}
}

// TestLiveTags loads the programs with both loaders: the kernel's tags are among ours, but for
// programs that CO-RE changes.
func TestLiveTags(t *testing.T) {
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SYMBOLIZE_LIVE is not set: loads BPF programs")
	}
	if os.Geteuid() != 0 {
		t.Skip("loading BPF programs needs root")
	}
	for _, name := range []string{"shapes.bpf.o", "count.bpf.o"} {
		o := readFile(t, name)
		for loader, tags := range map[string]map[string]string{
			"cilium/ebpf": loadCilium(t, name), "libbpf": loadBpftool(t, name),
		} {
			for i := range o.Functions {
				f := &o.Functions[i]
				tag := tags[f.Name]
				if f.Program && hasTag(f, tag) != (f.Uncertain == "") {
					t.Errorf("%s by %s: %s has the tag %s, computed %v, uncertain %q", name, loader,
						f.Name, tag, f.Tags, f.Uncertain)
				}
			}
			t.Logf("%s by %s: %v", name, loader, tags)
		}
	}
}

// loadCilium returns the tags of the programs that cilium/ebpf loads, by name.
func loadCilium(t *testing.T, name string) map[string]string {
	t.Helper()
	spec, err := ebpf.LoadCollectionSpec(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tags := make(map[string]string)
	for prog, p := range c.Programs {
		info, err := p.Info()
		if err != nil {
			t.Fatal(err)
		}
		tags[prog] = info.Tag
	}
	return tags
}

// loadBpftool is loadCilium for bpftool, which uses libbpf.
func loadBpftool(t *testing.T, name string) map[string]string {
	t.Helper()
	if _, err := exec.LookPath("bpftool"); err != nil {
		t.Skip("bpftool is not installed")
	}
	dir, err := os.MkdirTemp("/sys/fs/bpf", "tags")
	if err != nil {
		t.Skipf("no BPF file system: %v", err)
	}
	defer os.RemoveAll(dir)
	pins := filepath.Join(dir, "progs")
	out, err := exec.Command("bpftool", "prog", "loadall", filepath.Join("testdata", name),
		pins).CombinedOutput()
	if err != nil {
		t.Fatalf("bpftool: %v\n%s", err, out)
	}
	paths, err := filepath.Glob(filepath.Join(pins, "*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("nothing was pinned: %v", err)
	}
	tags := make(map[string]string)
	for _, p := range paths {
		out, err := exec.Command("bpftool", "-j", "prog", "show", "pinned", p).Output()
		if err != nil {
			t.Fatal(err)
		}
		var shown struct{ Name, Tag string }
		if err := json.Unmarshal(out, &shown); err != nil {
			t.Fatal(err)
		}
		tags[shown.Name] = shown.Tag
	}
	return tags
}
