package capture

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"symbolize/ingest/bpf"
	"symbolize/ingest/bundle"
	"symbolize/ingest/perfdata"
)

// loaderEnv makes the test binary a program that loads BPF programs, "COUNT LIFE":
// each is there for LIFE, and for as long again there is none.
const loaderEnv = "SYMBOLIZE_TEST_LOADER"

func TestMain(m *testing.M) {
	if how := os.Getenv(loaderEnv); how != "" {
		if err := loadPrograms(how); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func loadPrograms(how string) error {
	number, life, _ := strings.Cut(how, " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	d, err := time.ParseDuration(life)
	if err != nil {
		return err
	}
	wait := func(d time.Duration) { // sleeping takes longer than some programs live
		for end := time.Now().Add(d); time.Now().Before(end); {
		}
	}
	for range n {
		p, err := ebpf.NewProgram(shortLived())
		if err != nil {
			return err
		}
		wait(d)
		p.Close()
		wait(d)
		time.Sleep(time.Millisecond)
	}
	return nil
}

// shortLived is a program of two functions, with BTF.
func shortLived() *ebpf.ProgramSpec {
	proto := &btf.FuncProto{Return: &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}}
	fn := func(ins asm.Instruction, name string, l btf.FuncLinkage) asm.Instruction {
		return btf.WithFuncMetadata(ins.WithSymbol(name), &btf.Func{Name: name, Type: proto, Linkage: l})
	}
	return &ebpf.ProgramSpec{Name: "short_lived", Type: ebpf.SocketFilter, License: "GPL",
		Instructions: asm.Instructions{
			fn(asm.Call.Label("short_lived_inner"), "short_lived", btf.GlobalFunc),
			asm.Return(),
			fn(asm.Mov.Imm(asm.R0, 0), "short_lived_inner", btf.StaticFunc),
			asm.Return(),
		}}
}

func needLive(t *testing.T) {
	t.Helper()
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SKIPPED: live tests run with SYMBOLIZE_LIVE=1")
	}
	for _, n := range Check() {
		if n.Fatal {
			t.Skipf("SKIPPED: %s is missing, so that %s", n.Name, n.For)
		}
	}
}

// record captures a loader and returns the bundle's path.
func record(t *testing.T, count int, life string, opts Options) (string, *Summary) {
	t.Helper()
	t.Setenv(loaderEnv, fmt.Sprintf("%d %s", count, life))
	path := filepath.Join(t.TempDir(), "capture.data")
	w, err := bundle.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	opts.Command = []string{os.Args[0]}
	opts.Stderr = os.Stderr
	sum, err := Record(t.Context(), w, opts)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Command.Status != 0 {
		t.Fatalf("the loader: %+v", sum.Command)
	}
	return path, sum
}

// programsOf decodes the programs of a bundle called short_lived, and counts the
// KSYMBOL records of their functions that tell of a load.
func programsOf(t *testing.T, path string) (list []bpf.Program, ksymbols int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fi, _ := f.Stat()
	b, err := bundle.Open(path, f, fi.Size())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	r, size, err := b.Entry(bundle.PerfDataName)
	if err != nil {
		t.Fatal(err)
	}
	d, err := perfdata.Open(path, r, size)
	if err != nil {
		t.Fatal(err)
	}
	var k perfdata.KSymbol
	for rr := d.AllRecords(); rr.Next(); {
		rec := rr.Record()
		if rec.Type != perfdata.TypeKSymbol {
			continue
		}
		if err := d.KSymbol(rec, &k); err != nil {
			t.Fatal(err)
		}
		if !k.Unregister && bytes.Contains(k.Name, []byte("_short_lived")) {
			ksymbols++
		}
	}
	blobs, _ := d.FeatureBytes(perfdata.FeatureBPFBTF, 1<<28)
	btfs, err := bpf.DecodeBTFs("btf", blobs, 0, bigEndian)
	if err != nil {
		t.Fatal(err)
	}
	infos, _ := d.FeatureBytes(perfdata.FeatureBPFProgInfo, 1<<28)
	list, err = bpf.DecodePrograms("info", infos, 0, bigEndian, btfs)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list, func(p bpf.Program) bool {
		return p.Name != "short_lived" || p.Missing != ""
	}), ksymbols
}

// TestLiveShortLived captures 100 programs that live 1 ms, five times: in the median
// at least 95 images, every other program listed with its reason, all KSYMBOL names.
// What is had of those that live 50 µs is reported.
func TestLiveShortLived(t *testing.T) {
	needLive(t)
	const count = 100
	var got []int
	for range 5 {
		path, sum := record(t, count, "1ms", Options{})
		list, ksymbols := programsOf(t, path)
		got = append(got, len(list))
		if len(list)+len(sum.Missing) < count || ksymbols != 2*count {
			t.Errorf("%d images, %d missing, %d KSYMBOL records", len(list), len(sum.Missing), ksymbols)
		}
		for _, m := range sum.Missing {
			if m.Reason == "" || m.Symbol == "" {
				t.Errorf("missing %+v", m)
			}
		}
	}
	slices.Sort(got)
	t.Logf("images of %d programs that live 1 ms: %v", count, got)
	if got[2] < 95 {
		t.Errorf("median %d of %d images", got[2], count)
	}
	for _, life := range []string{"50us", "1us"} {
		path, _ := record(t, count, life, Options{})
		list, _ := programsOf(t, path)
		t.Logf("images of %d programs that live %s: %d", count, life, len(list))
	}
}

// TestLiveKernelCopy wants all images of programs that are unloaded at once.
func TestLiveKernelCopy(t *testing.T) {
	needLive(t)
	const count = 100
	path, sum := record(t, count, "0s", Options{KernelCopy: true})
	list, _ := programsOf(t, path)
	t.Logf("%d images, %d of them copied inside the kernel", len(list), sum.Copied)
	if len(list) != count {
		t.Errorf("%d of %d images; %v %v", len(list), count, sum.Warnings, sum.Lost)
	}
}

// TestLiveKernelCopyEqual compares the copies of programs that live long with what
// bpf(2) tells of them.
func TestLiveKernelCopyEqual(t *testing.T) {
	needLive(t)
	s := &session{opts: &Options{}, summary: &Summary{}}
	c := &copies{s: s}
	if err := c.start(); err != nil {
		t.Fatal(err)
	}
	defer c.close()
	p, err := ebpf.NewProgram(shortLived())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	x := &infoReader{}
	raw, err := x.program(p.FD())
	if err != nil {
		t.Fatal(err)
	}
	want := bpf.AppendProgram(nil, raw)
	c.stop()
	if len(s.summary.Warnings) > 0 {
		t.Fatal(s.summary.Warnings)
	}
	info, err := p.Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := info.ID()
	c.infos.sort()
	e, ok := c.infos.find(uint32(id))
	if !ok {
		t.Fatalf("no copy of program %d", id)
	}
	got, err := c.infos.read(e, nil)
	if err != nil {
		t.Fatal(err)
	}
	const gplAt = 16 + 84 // the one field of the info that is not copied
	want[gplAt] = got[gplAt]
	if !bytes.Equal(got, want) {
		t.Errorf("copy\n%x\nbpf(2)\n%x", got, want)
	}
}

// TestLiveEnds wants a whole bundle when the context ends, and nothing kept alive.
func TestLiveEnds(t *testing.T) {
	needLive(t)
	p, err := ebpf.NewProgram(shortLived())
	if err != nil {
		t.Fatal(err)
	}
	info, err := p.Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := info.ID()
	ctx, cancel := context.WithCancel(t.Context())
	path := filepath.Join(t.TempDir(), "x")
	w, err := bundle.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(300*time.Millisecond, cancel)
	if _, err := Record(ctx, w, Options{}); err != nil {
		t.Fatal(err)
	}
	if list, _ := programsOf(t, path); len(list) != 1 || len(list[0].Funcs) != 2 {
		t.Errorf("%d programs that were there before", len(list))
	}
	p.Close()
	for range 100 {
		if _, err = fdByID(cmdProgGetFDByID, uint32(id)); err != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the program is still there")
}
