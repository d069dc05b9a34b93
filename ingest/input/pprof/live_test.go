package pprof_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
	"symbolize/ingest/input/pprof"
	"symbolize/ingest/object/elf"
)

const liveProgram = `volatile unsigned long sink;
__attribute__((noinline)) void spin(void) {
	for (int i = 0; i < 1000; i++)
		sink += i;
}
int main(void) {
	spin();
	return 0;
}
`

// TestLivePprof has pprof itself find the instruction and the source line of a sample in programs
// linked in different ways: it must undo our mappings.
func TestLivePprof(t *testing.T) {
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SYMBOLIZE_LIVE is not set: needs gcc, binutils and go tool pprof")
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "spin.c")
	must.Write(t, source, []byte(liveProgram))
	all := profilebuild.New(profilebuild.Clock())
	layouts := make(map[string][]pprof.Segment)
	for name, flags := range map[string]string{
		"pie":             "-pie -fPIE",
		"non-pie":         "-no-pie",
		"one-segment":     "-no-pie -Wl,-z,noseparate-code -Wl,-Ttext-segment=0x600000",
		"pie-one-segment": "-pie -fPIE -Wl,-z,noseparate-code",
	} {
		program := filepath.Join(dir, name)
		args := strings.Fields("-g -O1 -Wl,--build-id " + flags)
		run(t, "gcc", append(args, "-o", program, source)...)
		addProgram(t, all, program, layouts)
		// pprof determines a file's base from the first address, in random order, and fails if that
		// is another file's: each has a profile of its own.
		one := profilebuild.New(profilebuild.Clock())
		at := addProgram(t, one, program, layouts)
		file := writeLive(t, one, program+".pb.gz", layouts)
		show := run(t, "go", "tool", "pprof", "-sample_index=samples", "-disasm", "spin", file)
		found := false
		for line := range strings.Lines(show) {
			found = found || strings.Contains(line, fmt.Sprintf(" %x:", uint64(at))) &&
				strings.HasPrefix(strings.TrimSpace(line), "100 ")
		}
		if !found {
			t.Errorf("%s: no 100 samples at %#x:\n%s", program, uint64(at), show)
		}
	}
	file := writeLive(t, all, filepath.Join(dir, "all.pb.gz"), layouts)
	run(t, "go", "tool", "pprof", "-top", file)
	run(t, "go", "tool", "pprof", "-traces", file)
	list := run(t, "go", "tool", "pprof", "-sample_index=samples", "-symbolize=local:force",
		"-list", "^spin$", file)
	if !regexp.MustCompile(`(?m)^ *400 +400 +4:.*sink \+= i;`).MatchString(list) {
		t.Errorf("-list:\n%s", list)
	}
}

func writeLive(t *testing.T, b *profilebuild.Builder, file string,
	layouts map[string][]pprof.Segment) string {
	t.Helper()
	p := b.Profile()
	data := write(t, p, pprof.WriteOptions{Layout: func(o ingest.ObjectID) []pprof.Segment {
		return layouts[p.Objects[o].File.Path]
	}})
	must.Write(t, file, data)
	return file
}

// addProgram adds 100 samples at the second instruction of spin, or one near it.
func addProgram(t *testing.T, b *profilebuild.Builder, program string,
	layouts map[string][]pprof.Segment) addr.Addr {
	t.Helper()
	f, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	e, err := elf.Open(program, f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	at := secondInstruction(t, program)
	layouts[program] = nil
	o := b.Object(ingest.Object{ID: e.ID, File: ingest.FileRef{Path: program}})
	for _, s := range e.Segments {
		if s.Flags&1 == 0 {
			continue
		}
		layouts[program] = append(layouts[program], pprof.Segment{Offset: s.Offset,
			Size: s.MemSize})
		if at >= s.Addr && uint64(at-s.Addr) < s.MemSize {
			place := profilebuild.Place{Object: o, Offset: s.Offset + addr.Offset(at-s.Addr)}
			b.Name(place, 4, profilebuild.Frame{Name: "spin"})
			b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: 100, Weight: 100,
				Stack: []profilebuild.Place{place}})
		}
	}
	return at
}

// secondInstruction asks objdump, as an independent source, for an address in the loop of spin.
func secondInstruction(t *testing.T, program string) addr.Addr {
	t.Helper()
	seen := 0
	for line := range strings.Lines(run(t, "objdump", "-d", "--no-show-raw-insn",
		"--disassemble=spin", program)) {
		var at uint64
		if _, err := fmt.Sscanf(strings.TrimSpace(line), "%x:", &at); err == nil {
			if seen++; seen == 3 {
				return addr.Addr(at)
			}
		}
	}
	t.Fatalf("%s: objdump shows no third instruction", program)
	return 0
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
