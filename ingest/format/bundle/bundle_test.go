package bundle

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"symbolize/fixtures/must"
	"symbolize/ingest/files"
	"testing"

	"github.com/klauspost/compress/zstd"

	"symbolize/buildid"
	"symbolize/fixtures/golden"
	"symbolize/fixtures/sweep"
)

func testManifest() *Manifest {
	return &Manifest{
		Recorder: "symbolize test", Machine: "x86_64", ByteOrder: "little", PageSize: 4096, CPUs: 4,
		Host: "host", BootID: "0b1c2d3e-0000-4000-8000-000000000001", OSRelease: "6.18.0",
		KernelBuildID: "00112233445566778899aabbccddeeff00112233", Text: 0xffffffff81000000,
		Begin:   Clocks{Perf: 10, Monotonic: 20, Boottime: 30, Realtime: 1_700_000_000_000_000_001},
		End:     Clocks{Perf: 110, Monotonic: 120, Boottime: 130, Realtime: 1_700_000_000_900_000_001},
		Lost:    map[string]uint64{"ring full": 2, "gone before it could be read": 1},
		Command: []string{"perf", "record", "-a"},
	}
}

var testEntries = map[string]string{
	"perf.data": "PERFILE2…", "kernel/kallsyms": "ffffffff81000000 T _text\n",
	"proc/7/maps": "00400000-00401000 r-xp 00000000 08:01 9 /bin/x\n", "proc/7/perf.map": "",
	"dumps/counts": "BPFDUMP\n", "vdso/abcd.so": "\x7fELF",
}

// build writes a bundle of these entries, added in the order of names, and returns its bytes.
func build(t testing.TB, names []string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "capture.data")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, name := range names {
		if err := w.Add(name, []byte(testEntries[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(testManifest()); err != nil {
		t.Fatal(err)
	}
	b := must.Read(t, path)
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("Commit left %q", left)
	}
	return b
}

func entryNames() []string {
	var names []string
	for name := range testEntries {
		names = append(names, name)
	}
	slices.SortFunc(names, entryOrder)
	return names
}

func open(t testing.TB, data []byte) (*Bundle, error) {
	t.Helper()
	b, err := Open("test", bytes.NewReader(data), int64(len(data)))
	if err == nil {
		t.Cleanup(func() { b.Close() })
	}
	return b, err
}

func TestRoundTrip(t *testing.T) {
	data := build(t, entryNames())
	if !IsBundle(data[:min(len(data), 512)]) || !Detect(bytes.NewReader(data), int64(len(data))) {
		t.Error("not recognised by its first 512 bytes")
	}
	b, err := open(t, data)
	if err != nil || len(b.Warnings) > 0 {
		t.Fatal(err, b.Warnings)
	}
	want := testManifest()
	want.Format, want.Entries = formatPlain, b.Manifest.Entries
	if !reflect.DeepEqual(&b.Manifest, want) {
		t.Errorf("manifest\n%+v\nwant\n%+v", b.Manifest, *want)
	}
	if !slices.Equal(b.Names(), entryNames()) || len(b.Manifest.Entries) != len(testEntries) {
		t.Errorf("names %q", b.Names())
	}
	for name, content := range testEntries {
		got, err := b.ReadEntry(name, 100)
		if err != nil || string(got) != content {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := b.ReadEntry("kernel/kallsyms", 3); !errors.Is(err, ErrTooLarge) {
		t.Errorf("an entry over the limit: %v", err)
	}
	if _, _, err := b.Entry("nothing"); !errors.Is(err, ErrNoEntry) {
		t.Errorf("no entry: %v", err)
	}
	if m := &b.Manifest; m.KernelID().Hex() != m.KernelBuildID || m.BigEndian() {
		t.Errorf("kernel %v, big-endian %v", m.KernelID(), m.BigEndian())
	}
}

// TestDeterministic adds the same entries in both orders.
func TestDeterministic(t *testing.T) {
	names := entryNames()
	first := build(t, names)
	slices.Reverse(names)
	if !bytes.Equal(first, build(t, names)) {
		t.Error("equal contents, different bytes")
	}
}

func TestManifestGolden(t *testing.T) {
	b, err := open(t, build(t, entryNames()))
	if err != nil {
		t.Fatal(err)
	}
	got, err := EncodeManifest(&b.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "manifest.golden.json", got)
}

// TestTools has tar and zstd list and unpack a bundle.
func TestTools(t *testing.T) {
	path := filepath.Join(t.TempDir(), "capture.data")
	must.Write(t, path, build(t, entryNames()))
	want := ManifestName + "\n" + strings.Join(entryNames(), "\n") + "\n"
	for _, args := range [][]string{
		{"tar", "-tf", path}, {"sh", "-c", `zstd -dcq "$0" | tar -tf -`, path},
	} {
		_, noTool := exec.LookPath(args[0])
		_, noZstd := exec.LookPath("zstd")
		if noTool != nil || noZstd != nil {
			t.Skip("SKIPPED: no tar or zstd")
		}
		out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

func TestWriterRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "capture.data")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "..", "/etc/passwd", "../x", "a/../b", "a//b", "a/",
		"a\nb", `a\b`, strings.Repeat("n", maxName+1), ManifestName} {
		if err := w.Add(name, nil); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	broken := errors.New("broken")
	err = w.AddReader("a", io.MultiReader(strings.NewReader("half"), errReader{broken}))
	if !errors.Is(err, broken) || w.Has("a") {
		t.Errorf("a reader that fails: %v", err)
	}
	if err := errors.Join(w.Add("a", []byte("whole")), w.Add("b", nil)); err != nil {
		t.Fatal(err)
	}
	if err := w.Add("a", nil); !errors.Is(err, ErrDuplicate) {
		t.Errorf("twice: %v", err)
	}
	w.Abort()
	w.Abort()
	if err := w.Add("c", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("after Abort: %v", err)
	}
	if err := w.Commit(testManifest()); !errors.Is(err, ErrClosed) {
		t.Errorf("Commit after Abort: %v", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) > 0 {
		t.Errorf("Abort left %v", left)
	}
}

type errReader struct{ error }

func (r errReader) Read([]byte) (int, error) { return 0, r.error }

// TestCommitFails must leave neither the target changed nor anything beside it.
func TestCommitFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "taken")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path); !errors.Is(err, files.ErrNotRegular) {
		t.Errorf("in place of a directory: %v", err)
	}
	if err := w.Commit(testManifest()); err == nil {
		t.Error("renamed over a directory")
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left %v", left)
	}
}

// TestRenameTaken: a bundle does not get the name of another file, before and after its first
// flush.
func TestRenameTaken(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	must.Write(t, taken, []byte("old"))
	w, err := Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, flushed := range []bool{false, true} {
		if flushed {
			if err := w.Flush(testManifest()); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Rename(taken); !errors.Is(err, fs.ErrExist) {
			t.Errorf("flushed %v: %v", flushed, err)
		}
	}
	if err := w.Rename(filepath.Join(dir, "free")); err != nil || w.Path() != filepath.Join(dir, "free") {
		t.Errorf("%s: %v", w.Path(), err)
	}
	if b, err := os.ReadFile(taken); err != nil || string(b) != "old" {
		t.Errorf("%q, %v", b, err)
	}
}

// tarOf makes a tar of headers and contents; zstd packs it in one frame, as other
// programs do.
func tarOf(t testing.TB, headers []tar.Header, contents []string) (plain, packed []byte) {
	t.Helper()
	var buf, z bytes.Buffer
	w := tar.NewWriter(&buf)
	for i, h := range headers {
		h.Size = int64(len(contents[i]))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, contents[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	pack, err := zstd.NewWriter(&z)
	if err != nil {
		t.Fatal(err)
	}
	pack.Write(buf.Bytes())
	pack.Close()
	return buf.Bytes(), z.Bytes()
}

// TestForeign reads bundles that other programs packed, and reports the entries left out.
func TestForeign(t *testing.T) {
	reg := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }
	headers := []tar.Header{reg("./manifest.json"), {Typeflag: tar.TypeDir, Name: "proc/"},
		reg("./proc/7/maps"), {Typeflag: tar.TypeSymlink, Name: "link", Linkname: "/etc/passwd"},
		reg("../../../etc/passwd"), reg("proc/7/maps"), reg("listed"), reg("added")}
	contents := []string{`{"format": 1, "later": [1], "entries": [
		{"name": "listed", "size": 1, "sha256": "00"}, {"name": "gone", "size": 2}]}`,
		"", "maps", "", "", "second", "x", "of a user"}
	plain, packed := tarOf(t, headers, contents)
	for _, data := range [][]byte{plain, packed} {
		if !Detect(bytes.NewReader(data), int64(len(data))) {
			t.Error("not recognised")
		}
		b, err := open(t, data)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"proc/7/maps", "added"}; !slices.Equal(b.Names(), want) {
			t.Errorf("names %q, want %q", b.Names(), want)
		}
		if got, err := b.ReadEntry("added", 10); err != nil || string(got) != "of a user" {
			t.Errorf("added: %q, %v", got, err)
		}
		for _, want := range []string{`"link"`, `"../../../etc/passwd"`, `a second entry "proc/7/maps"`,
			`"listed" is left out: its content`, `1 of 2 entries are missing, the first is "gone"`} {
			if !strings.Contains(fmt.Sprint(b.Warnings), want) {
				t.Errorf("no warning of %s in %v", want, b.Warnings)
			}
		}
	}
}

func TestNotBundles(t *testing.T) {
	reg := func(name string) []tar.Header { return []tar.Header{{Typeflag: tar.TypeReg, Name: name}} }
	other, packedOther := tarOf(t, reg("README"), []string{"x"})
	newer, _ := tarOf(t, reg(ManifestName), []string{`{"format": 6}`})
	none, _ := tarOf(t, reg(ManifestName), []string{`{}`})
	text, _ := tarOf(t, reg(ManifestName), []string{`no JSON`})
	addr, _ := tarOf(t, reg(ManifestName), []string{`{"format": 1, "text": "up there"}`})
	tests := []struct {
		name   string
		data   []byte
		detect bool
		want   error
		text   string
	}{
		{name: "empty", want: ErrNotBundle},
		{name: "text", data: []byte("hello"), want: ErrNotBundle},
		{name: "zstd of nothing", data: []byte("\x28\xb5\x2f\xfd"), want: ErrNotBundle},
		{name: "another tar", data: other, want: ErrNotBundle, text: "README"},
		{name: "another tar, packed", data: packedOther, want: ErrNotBundle, text: "README"},
		{name: "newer", data: newer, detect: true, want: ErrNewer, text: "6"},
		{name: "no format", data: none, detect: true, text: "format 0"},
		{name: "no JSON", data: text, detect: true, text: "manifest.json: offset"},
		{name: "bad address", data: addr, detect: true, text: "up there"},
	}
	for _, tt := range tests {
		if got := Detect(bytes.NewReader(tt.data), int64(len(tt.data))); got != tt.detect {
			t.Errorf("%s: Detect %v", tt.name, got)
		}
		_, err := open(t, tt.data)
		if err == nil || tt.want != nil && !errors.Is(err, tt.want) ||
			!strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestTruncated opens every prefix of a bundle, packed and not: whole entries are kept and the
// others are named.
func TestTruncated(t *testing.T) {
	whole := build(t, entryNames())
	z := files.ZstdReader(bytes.NewReader(whole), maxWindow)
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	most, rnd := 0, sweep.Rand(t)
	for _, data := range [][]byte{whole, plain} {
		for n := range sweep.Of(rnd, len(data), 500) {
			b, err := open(t, data[:n])
			if err != nil {
				continue
			}
			for _, name := range b.Names() {
				if got, err := b.ReadEntry(name, 1000); err != nil || string(got) != testEntries[name] {
					t.Fatalf("%d bytes: %s is %q, %v", n, name, got, err)
				}
			}
			most = max(most, len(b.Names()))
			if len(b.Names()) < len(testEntries) && len(b.Warnings) == 0 {
				t.Fatalf("%d bytes: only %q, and no warning", n, b.Names())
			}
		}
	}
	if most == 0 {
		t.Error("nothing was ever kept")
	}
}

// TestBomb must stop long before its 8 GiB are unpacked.
func TestBomb(t *testing.T) {
	var z bytes.Buffer
	pack, err := zstd.NewWriter(&z)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(pack)
	manifest := `{"format": 1}`
	w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: ManifestName, Size: int64(len(manifest))})
	io.WriteString(w, manifest)
	w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "zeros", Size: 1 << 33})
	zeros := make([]byte, 1<<20)
	for range 320 {
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	pack.Close()
	b, err := open(t, z.Bytes())
	if err != nil || len(b.Names()) > 0 ||
		!strings.Contains(fmt.Sprint(b.Warnings), "unpacks to more") {
		t.Fatal(err, b.Names(), b.Warnings)
	}
}

func TestModules(t *testing.T) {
	id := buildid.New([]byte{1, 2, 3, 4, 5, 6, 7, 8})
	want := []Module{{Name: "none", Unloaded: 7},
		{Name: "ext4", BuildID: HexID{id}, Addr: 0xffffffffc0000000, Size: 99, Loaded: 5}}
	data, err := EncodeModules([]Module{want[1], want[0]})
	if err != nil {
		t.Fatal(err)
	}
	plain, _ := tarOf(t, []tar.Header{{Typeflag: tar.TypeReg, Name: ManifestName},
		{Typeflag: tar.TypeReg, Name: ModulesName}}, []string{`{"format": 1}`, string(data)})
	b, err := open(t, plain)
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.Modules()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v\n%s", got, err, data)
	}
}

func TestNoModules(t *testing.T) {
	if got, err := EncodeModules(nil); string(got) != "[]\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestNames(t *testing.T) {
	if pid, ok := MapsPID(MapsName(77)); pid != 77 || !ok {
		t.Error(pid, ok)
	}
	if pid, ok := PerfMapPID(PerfMapName(78)); pid != 78 || !ok {
		t.Error(pid, ok)
	}
	for _, bad := range []string{"proc/maps", "proc/x/maps", "proc/-1/maps", "proc/99999999999/maps",
		"7/maps", "proc/7/perf.map"} {
		if pid, ok := MapsPID(bad); ok {
			t.Errorf("%s: %d", bad, pid)
		}
	}
	for _, n := range []uint32{0, 1, 1<<32 - 1} {
		if pid, program, ok := MapsProgram(ProgramMapsName(79, n)); pid != 79 || program != n || !ok {
			t.Error(pid, program, ok)
		}
	}
	for _, bad := range []string{"proc/7/program/0/maps", "proc/7/program/x/maps", "proc/7/program/1",
		"proc/0/program/1/maps", "proc/program/1/maps", "proc/7/program/4294967296/maps",
		"proc/7/program/1/program/2/maps"} {
		if pid, program, ok := MapsProgram(bad); ok {
			t.Errorf("%s: %d, %d", bad, pid, program)
		}
	}
	if name, ok := CutDump(DumpName("x")); name != "x" || !ok {
		t.Error(name, ok)
	}
	if id, ok := CutVDSO(VDSOName("ab")); id != "ab" || !ok {
		t.Error(id, ok)
	}
}

func FuzzOpen(f *testing.F) {
	data := build(f, entryNames())
	f.Add(data)
	f.Add(data[:len(data)/2])
	plain, packed := tarOf(f, []tar.Header{{Typeflag: tar.TypeReg, Name: ManifestName}},
		[]string{`{"format": 1}`})
	f.Add(plain)
	f.Add(packed)
	f.Fuzz(func(t *testing.T, data []byte) {
		IsBundle(data)
		b, err := open(t, data)
		if err != nil {
			return
		}
		for _, name := range b.Names() {
			if _, err := b.ReadEntry(name, 1<<20); err != nil && !errors.Is(err, ErrTooLarge) {
				t.Error(err)
			}
		}
		b.Modules()
	})
}

func TestSeriesName(t *testing.T) {
	name := SeriesName("a map/../x", 7, 12)
	if name != "dumps/maps/7-a_map_.._x/000012" || !validName(name) {
		t.Errorf("%s", name)
	}
	if series, n, ok := CutSeries(name); series != "7-a_map_.._x" || n != 12 || !ok {
		t.Errorf("%s is %q, %d, %v", name, series, n, ok)
	}
	for _, entry := range []string{"dumps/maps/7-x", "dumps/maps//000001", "dumps/maps/7-x/0",
		"dumps/stacks", "dumps/maps/7-x/one", "maps/7-x/000001"} {
		if _, _, ok := CutSeries(entry); ok {
			t.Errorf("%s is a dump of a series", entry)
		}
	}
	const kept = "azAZ09_."
	if name := SeriesName(kept, 1, 2); name != seriesDir+"1-"+kept+"/000002" {
		t.Errorf("%s", name)
	}
	if name := SeriesName("`{@[/:^-", 1, 2); name != seriesDir+"1-________/000002" {
		t.Errorf("neighbours of what fits: %s", name)
	}
}
