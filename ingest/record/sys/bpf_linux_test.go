package sys

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"symbolize/fixtures/livemap"
	"symbolize/fixtures/must"
	"symbolize/ingest/format/rawdump"
)

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
	must.BeLive(t, "makes BPF maps")
	r := &MapReader{CPUs: ebpf.MustPossibleCPU()}
	for _, typ := range []ebpf.MapType{ebpf.Hash, ebpf.Array, ebpf.PerCPUHash, ebpf.PerCPUArray,
		ebpf.LRUHash, ebpf.LRUCPUHash} {
		const entries = 3000
		m := livemap.New(t, typ, "live_reader", 4*entries)
		for key := range uint32(entries) {
			fill(t, m, key, uint64(key)*7)
		}
		h, err := r.Header(m.FD())
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
	h, err := r.Header(m.FD())
	if err != nil {
		t.Fatal(err)
	}
	if out, err := r.Dump(nil, m.FD(), &h); !errors.Is(err, errUnread) {
		t.Errorf("a ring buffer: %d bytes, %v", len(out), err)
	}
}

// TestLiveMapSlots: an empty slot is not a loss, a value that is not returned is.
func TestLiveMapSlots(t *testing.T) {
	must.BeLive(t, "makes BPF maps")
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
		r := &MapReader{CPUs: 1}
		h, err := r.Header(m.FD())
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
		lost := r.lost["elements without a value: the kernel returns none"]
		if got := len(r.pairs) / 8; got != want || lost != wantLost {
			t.Errorf("%v: %d elements, want %d; lost %v", typ, got, want, r.lost)
		}
	}
}

// TestDumpBounds: elements beyond a bound are counted, and the dump stays whole.
func TestDumpBounds(t *testing.T) {
	r := &MapReader{}
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
	if _, err := r.Dump(nil, -1, &h); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a value of 1 GiB: %v", err)
	}
}

// TestReasons: errors of bpf(2) in the words of package bpf, others in the kernel's.
func TestReasons(t *testing.T) {
	for err, want := range map[error]string{unix.ENOENT: "gone before it could be read",
		unix.EPERM: "no rights to read it", unix.EACCES: "no rights to read it",
		ErrTooLarge: "too large", fmt.Errorf("x: %w", unix.EMFILE): "x: too many open files"} {
		if got := Reason(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
