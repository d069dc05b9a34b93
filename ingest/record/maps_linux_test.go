package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"symbolize/ingest/format/bpf"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/perfdata"
	"symbolize/ingest/format/rawdump"
)

// liveMap makes a map with BTF that has one key more at each step.
func liveMap(t *testing.T, typ ebpf.MapType, name string, entries uint32) *ebpf.Map {
	t.Helper()
	u32 := &btf.Int{Name: "unsigned int", Size: 4}
	value := &btf.Struct{Name: "live_value", Size: 8, Members: []btf.Member{
		{Name: "count", Type: &btf.Int{Name: "unsigned long", Size: 8}}}}
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: name, Type: typ, KeySize: 4, ValueSize: 8,
		MaxEntries: entries, Key: u32, Value: value})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// fill writes a value for each CPU, or one.
func fill(t *testing.T, m *ebpf.Map, key uint32, value uint64) {
	t.Helper()
	var v any = value
	switch m.Type() {
	case ebpf.PerCPUArray, ebpf.PerCPUHash, ebpf.LRUCPUHash:
		n, err := ebpf.PossibleCPU()
		if err != nil {
			t.Fatal(err)
		}
		list := make([]uint64, n)
		for i := range list {
			list[i] = value + uint64(i)
		}
		v = list
	}
	if err := m.Put(key, v); err != nil {
		t.Fatal(err)
	}
}

// TestLiveMapReader reads maps of each kind in batches and by keys: both give all pairs.
func TestLiveMapReader(t *testing.T) {
	needLive(t)
	r := &mapReader{cpus: possibleCPUs("")}
	for _, typ := range []ebpf.MapType{ebpf.Hash, ebpf.Array, ebpf.PerCPUHash, ebpf.PerCPUArray,
		ebpf.LRUHash, ebpf.LRUCPUHash} {
		const entries = 3000
		m := liveMap(t, typ, "live_reader", 4*entries)
		for key := range uint32(entries) {
			fill(t, m, key, uint64(key)*7)
		}
		h, err := r.header(m.FD())
		if err != nil {
			t.Fatal(err)
		}
		if h.Type != uint32(typ) || h.Name != "live_reader" || h.KeySize != 4 || h.ValueSize != 8 ||
			h.BTFID == 0 || h.KeyType == 0 || h.ValueType == 0 || (h.CPUs > 0) !=
			strings.Contains(typ.String(), "CPU") {
			t.Errorf("%v: %+v", typ, h)
		}
		for way, read := range map[string]func(int, *rawdump.Header, int) error{
			"batches": r.batches, "elements": r.elements} {
			r.pairs, r.lost = nil, nil
			if err := read(m.FD(), &h, int(h.Stride())); err != nil || r.lost != nil {
				t.Errorf("%v by %s: %v, lost %v", typ, way, err, r.lost)
				continue
			}
			seen := make(map[uint32]bool)
			pair := 4 + int(h.Stride())
			for p := r.pairs; len(p) >= pair; p = p[pair:] {
				key := binary.NativeEndian.Uint32(p)
				value := binary.NativeEndian.Uint64(p[4:])
				if key < entries && value != uint64(key)*7 || seen[key] {
					t.Fatalf("%v by %s: key %d has %d, seen before: %v", typ, way, key, value, seen[key])
				}
				seen[key] = true
				if h.CPUs > 1 && key < entries && binary.NativeEndian.Uint64(p[12:]) != value+1 {
					t.Fatalf("%v by %s: key %d: value of CPU 1", typ, way, key)
				}
			}
			for key := range uint32(entries) {
				if !seen[key] {
					t.Fatalf("%v by %s: no key %d of %d", typ, way, key, len(seen))
				}
			}
		}
	}
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: 4096})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	h, err := r.header(m.FD())
	if err != nil {
		t.Fatal(err)
	}
	if out, err := r.dump(nil, m.FD(), &h); !errors.Is(err, errUnread) {
		t.Errorf("a ring buffer: %d bytes, %v", len(out), err)
	}
}

// TestLiveMapSlots: an empty slot is no loss, a value that is not returned is one.
func TestLiveMapSlots(t *testing.T) {
	needLive(t)
	inner := &ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1}
	one, err := ebpf.NewMap(inner)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	for typ, counted := range map[ebpf.MapType]bool{ebpf.ProgramArray: true, ebpf.CGroupArray: false,
		ebpf.ArrayOfMaps: true, ebpf.PerfEventArray: false, ebpf.CPUMap: true} {
		m, err := ebpf.NewMap(&ebpf.MapSpec{Type: typ, KeySize: 4, ValueSize: 4, MaxEntries: 4,
			InnerMap: inner})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		want := 0
		if typ == ebpf.ArrayOfMaps {
			if err := m.Put(uint32(2), one); err != nil {
				t.Fatal(err)
			}
			want = 1
		}
		r := &mapReader{cpus: 1}
		h, err := r.header(m.FD())
		if err != nil {
			t.Fatal(err)
		}
		if err := r.elements(m.FD(), &h, int(h.Stride())); err != nil {
			t.Fatal(err)
		}
		var wantLost uint64
		if !counted {
			wantLost = uint64(h.MaxEntries)
		}
		lost := r.lost["elements of which the kernel tells no values"]
		if got := len(r.pairs) / 8; got != want || lost != wantLost {
			t.Errorf("%v: %d elements, want %d; lost %v", typ, got, want, r.lost)
		}
	}
}

// TestLiveCaptureMaps records maps: one grows, one goes and is made anew,
// one never appears.
func TestLiveCaptureMaps(t *testing.T) {
	needLive(t)
	grows := liveMap(t, ebpf.PerCPUHash, "live_grows", 100)
	goes := liveMap(t, ebpf.Hash, "live_goes", 10)
	path := filepath.Join(t.TempDir(), "capture.data")
	w, err := bundle.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	// The command signals that the recording has begun, and ends when all is done.
	ready, says, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	hears, ends, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	steps := make(chan error, 1)
	go func() {
		_, err := ready.Read(make([]byte, 1))
		steps <- errors.Join(err, changeMaps(grows, goes), ends.Close())
	}()
	sum, err := Record(t.Context(), w, Options{
		Maps:        []string{"live_grows", "live_goes", "live_never"},
		MapInterval: 30 * time.Millisecond, Command: []string{"sh", "-c", "echo; read end"},
		Stdin: hears, Stdout: says})
	says.Close() // if the command did not run
	if err := errors.Join(err, <-steps); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{ready, hears} {
		f.Close()
	}
	warnings := strings.Join(sum.Warnings, "\n")
	for _, want := range []string{"map live_goes (id ", "was gone after", "another one of this name",
		"map live_never was never there"} {
		if !strings.Contains(warnings, want) {
			t.Errorf("no %q in the warnings:\n%s", want, warnings)
		}
	}
	checkSeries(t, path, sum)
}

// changeMaps lets a map grow while another one goes and one of its name comes. A recorder
// that takes dumps every 30 ms has seen each state, also on a machine that lets it wait for
// half a second.
func changeMaps(grows, goes *ebpf.Map) error {
	const gone, anew, steps = 10, 20, 40
	for i := range uint32(steps) {
		time.Sleep(50 * time.Millisecond)
		if err := grows.Put(i, make([]uint64, possibleCPUs(""))); err != nil {
			return err
		}
		switch i {
		case gone:
			goes.Close()
		case anew:
			again, err := ebpf.NewMap(&ebpf.MapSpec{Name: "live_goes", Type: ebpf.Array,
				KeySize: 4, ValueSize: 4, MaxEntries: 3})
			if err != nil {
				return err
			}
			defer again.Close()
		}
	}
	return nil
}

// checkSeries opens the dumps of the bundle: their times and pairs grow, and the BTF
// that they name is there.
func checkSeries(t *testing.T, path string, sum *Summary) {
	b, err := bundle.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Warnings) > 0 {
		t.Fatal(b.Warnings)
	}
	defer b.Close()
	r, size, err := b.Entry(bundle.PerfDataName)
	if err != nil {
		t.Fatal(err)
	}
	d, err := perfdata.Open("perf.data", r, size)
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := d.FeatureBytes(perfdata.FeatureBPFBTF, 1<<28)
	if err != nil {
		t.Fatal(err)
	}
	btfs, err := bpf.DecodeBTFs("btf", blobs, 0, bigEndian)
	if err != nil {
		t.Fatal(err)
	}
	dumps, last := 0, make(map[string]rawdump.Header)
	for _, entry := range b.Names() {
		series, n, ok := bundle.CutSeries(entry)
		if !ok {
			continue
		}
		dumps++
		r, size, err := b.Entry(entry)
		if err != nil {
			t.Fatal(err)
		}
		x, err := rawdump.Open(entry, r, size)
		if err != nil {
			t.Fatal(err)
		}
		h := x.Header
		before, again := last[series]
		if again && (h.Time <= before.Time || h.Entries < before.Entries) || (n > 1) != again ||
			series != fmt.Sprintf("%d-%s", h.MapID, h.Name) {
			t.Errorf("%s: %+v behind %+v", entry, h, before)
		}
		if h.BTFID != 0 && (btfs[h.BTFID] == nil || btfs[h.BTFID].Name(1) == "" &&
			btfs[h.BTFID].Len() < 3) {
			t.Errorf("%s: no BTF %d", entry, h.BTFID)
		}
		last[series] = h
	}
	if dumps != sum.MapDumps || dumps < 20 || len(last) != 3 || sum.Maps != 3 {
		t.Errorf("%d dumps of %d maps; the summary has %d of %d", dumps, len(last), sum.MapDumps, sum.Maps)
	}
	for series, h := range last {
		if strings.HasSuffix(series, "live_grows") && (h.Entries < 5 || h.BTFID == 0) {
			t.Errorf("%s: at last %+v", series, h)
		}
	}
}

// TestLiveCaptureNoMap: a name that no map has is an error at once.
func TestLiveCaptureNoMap(t *testing.T) {
	needLive(t)
	path := filepath.Join(t.TempDir(), "capture.data")
	w, err := bundle.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Record(t.Context(), w, Options{Duration: time.Minute, Maps: []string{"live_nobody"}})
	if !errors.Is(err, ErrNoMap) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a file: %v", err)
	}
}

// TestSeriesBounds: elements beyond a bound are counted, and the dump stays whole.
func TestSeriesBounds(t *testing.T) {
	r := &mapReader{}
	value := make([]byte, maxMapBytes/4)
	for range 6 {
		r.keep([]byte("key."), value)
	}
	if len(r.pairs) != 3*(4+len(value)) || len(r.lost) != 1 {
		t.Errorf("%d bytes, lost %v", len(r.pairs), r.lost)
	}
	for _, n := range r.lost {
		if n != 3 {
			t.Errorf("lost %v", r.lost)
		}
	}
	h := rawdump.Header{KeySize: 4, ValueSize: 1 << 30}
	if _, err := r.dump(nil, -1, &h); !errors.Is(err, errTooLarge) {
		t.Errorf("a value of 1 GiB: %v", err)
	}
}
