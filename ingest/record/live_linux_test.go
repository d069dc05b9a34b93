package record

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

	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/record/sys"
)

// loaderEnv makes the test binary load BPF programs, "COUNT LIFE": each exists for LIFE, followed
// by a pause of the same length.
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
	for _, n := range CheckHost() {
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
// KSYMBOL records of their functions of loads.
func programsOf(t *testing.T, path string) (list []bpf.Program, ksymbols int) {
	t.Helper()
	b, err := bundle.OpenFile(path)
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

// recordShortLived captures 100 programs of this lifetime. Each must be named by KSYMBOL records,
// and have an image or a reason, in the bundle as in the summary. It returns the number of images.
func recordShortLived(t *testing.T, life string, opts Options) int {
	t.Helper()
	path, sum := record(t, shortLivedCount, life, opts)
	list, ksymbols := programsOf(t, path)
	if ksymbols != 2*shortLivedCount {
		t.Errorf("%s: %d KSYMBOL records, want those of %d functions", life, ksymbols, 2*shortLivedCount)
	}
	had := make(map[uint32]bool)
	for _, p := range list {
		had[p.ID] = true
	}
	missing, lost := 0, uint64(0)
	for _, m := range sum.Missing {
		if m.Reason == "" || m.Symbol == "" {
			t.Errorf("%s: missing %+v", life, m)
		}
		if had[m.ID] {
			t.Errorf("%s: program %d is missing and there", life, m.ID)
		}
		if strings.HasSuffix(m.Symbol, "_short_lived") {
			missing++
		}
	}
	if len(list)+missing != shortLivedCount {
		t.Errorf("%s: %d images, and %d programs with a reason, of %d", life, len(list), missing,
			shortLivedCount)
	}
	m := manifestOf(t, path)
	for cause, n := range m.Lost {
		if strings.HasPrefix(cause, "images of BPF programs: ") {
			lost += n
		}
	}
	if !slices.Equal(m.Missing, sum.Missing) || lost != uint64(len(sum.Missing)) {
		t.Errorf("%s: the manifest has %d missing and %d lost, the summary %d", life, len(m.Missing),
			lost, len(sum.Missing))
	}
	return len(list)
}

// shortLivedCount is how many programs come and go in a capture.
const shortLivedCount = 100

func manifestOf(t *testing.T, path string) *bundle.Manifest {
	t.Helper()
	b, err := bundle.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	return &b.Manifest
}

// TestLiveShortLived captures 100 programs that live 1 ms, five times: in the median at least 95
// images. The share of shorter lives is reported.
func TestLiveShortLived(t *testing.T) {
	needLive(t)
	for _, life := range []string{"1ms", "50us", "1us"} {
		var got []int
		for range 5 {
			got = append(got, recordShortLived(t, life, Options{}))
		}
		slices.Sort(got)
		t.Logf("images of %d programs that live %s, 5 runs: %v, median %d", shortLivedCount, life, got,
			got[2])
		if life == "1ms" && got[2] < 95 {
			t.Errorf("median %d of %d images", got[2], shortLivedCount)
		}
	}
}

// TestLiveKernelCopy wants all images, however short programs live.
func TestLiveKernelCopy(t *testing.T) {
	needLive(t)
	for _, life := range []string{"1ms", "50us", "1us", "0s"} {
		n := recordShortLived(t, life, Options{KernelCopy: true})
		t.Logf("images of %d programs that live %s, copied inside the kernel: %d", shortLivedCount, life,
			n)
		if n != shortLivedCount {
			t.Errorf("%s: %d images", life, n)
		}
	}
}

// TestLiveKernelCopyEqual compares the copies of long-lived programs with the records that
// bpf(2) returns.
func TestLiveKernelCopyEqual(t *testing.T) {
	needLive(t)
	s := newRecording(&Options{})
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
	x := &sys.ProgramReader{}
	raw, err := x.Program(p.FD())
	if err != nil {
		t.Fatal(err)
	}
	raw.Arrays[bpf.ArrayXlatedInsns] = nil // the program that copies leaves them out
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
	for range 3000 { // the kernel frees it when all CPUs have passed it
		if _, err = sys.OpenProgram(uint32(id)); err != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the program is still there")
}
