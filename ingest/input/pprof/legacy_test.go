package pprof

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

const legacyMaps = `
MAPPED_LIBRARIES:
00400000-00500000 r-xp 00000000 fe:00 11 /srv/app/bin/app
7f0000000000-7f0000100000 r-xp 00000000 fe:00 12 /usr/lib/libjemalloc.so.2
`

// memoryMap is legacyMaps after the header of other formats.
var memoryMap = strings.Replace(legacyMaps, "\nMAPPED_LIBRARIES:", "--- Memory map: ---", 1)

// binaryCPU is a CPU profile of gperftools: a header, two stacks, the end and the mappings.
func binaryCPU(order binary.AppendByteOrder, size int) string {
	var b []byte
	for _, w := range []uint64{0, 3, 0, 10000, 0, 5, 2, 0x400100, 0x400200, 7, 1, 0x400300, 0, 1, 0} {
		if size == 4 {
			b = order.AppendUint32(b, uint32(w))
		} else {
			b = order.AppendUint64(b, w)
		}
	}
	return string(b) + strings.TrimPrefix(legacyMaps, "\nMAPPED_LIBRARIES:\n")
}

const jemallocHeap = `heap_v2/524288
  t*: 5: 81920 [0: 0]
  t0: 3: 49152 [0: 0]
  t1: 2: 32768 [0: 0]
@ 0x7f0000000010 0x7f0000000020 0x400101 0x400201
  t*: 4: 65536 [0: 0]
  t0: 2: 32768 [0: 0]
@ 0x400301
  t0: 1: 16384 [0: 0]
  t1: 0: 0 [0: 0]
@ 0x7f0000000010
  t*: 1: 1048576 [0: 0]
`

// TestLegacy: the formats before profile.proto, by the sums of their columns, and where stacks begin.
func TestLegacy(t *testing.T) {
	for _, tt := range []struct {
		name, data, want string
	}{
		{name: "heap of gperftools", data: "heap profile: 2: 300 [ 5: 900] @ heapprofile\n" +
			"  2: 300 [ 5: 900] @ 0x400101 0x400201\n" + legacyMaps,
			want: "alloc_space 5 900, inuse_space 2 300, leaf 0x400100"},
		{name: "sampled heap of tcmalloc", data: "heap profile: 1: 1024 [ 1: 1024] @ heap_v2/1024\n" +
			"  1: 1024 [ 1: 1024] @ 0x400101\n" + legacyMaps, want: "space 1 1619, leaf 0x400100"},
		{name: "growth", data: "heap profile: 3: 300 [ 3: 300] @ growthz\n  3: 300 [ 3: 300] @ 0x400101\n" + legacyMaps,
			want: "space 3 300, leaf 0x400100"},
		{name: "contention", data: "--- contention:\ncycles/second = 1000000000\nsampling period = 1\n" +
			"500 3 @ 0x400101 0x400201\n" + memoryMap, want: "delay 3 500, leaf 0x400100"},
		{name: "goroutines", data: "goroutine profile: total 6\n6 @ 0x400101 0x400201\n" + memoryMap,
			want: "goroutine 6 6, leaf 0x400100"},
		{name: "CPU", data: binaryCPU(binary.LittleEndian, 8), want: "cpu 12 120000000, leaf 0x400100"},
		{name: "CPU of 32 bits", data: binaryCPU(binary.LittleEndian, 4), want: "cpu 12 120000000, leaf 0x400100"},
		{name: "big-endian CPU", data: binaryCPU(binary.BigEndian, 8), want: "cpu 12 120000000, leaf 0x400100"},
		{name: "Java", data: "--- heapz 1 ---\nformat = java\nresolution = bytes\n300 2 @ 0x00000001\n\n\n" +
			" 0x00000001 com.example.Main.main (Main.java:7)\n", want: "inuse_space 6991 1048726, leaf 0x0"},
		{name: "jemalloc", data: jemallocHeap + legacyMaps, want: "space 163 3875308, leaf 0x400100"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !Detect([]byte(tt.data)[:min(len(tt.data), 512)]) {
				t.Fatal("not recognized")
			}
			p, err := Read("x", []byte(tt.data), ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for i, e := range p.Events {
				count, weight := uint64(0), uint64(0)
				for j := range p.Samples {
					if s := &p.Samples[j]; int(s.Event) == i {
						count, weight = count+s.Count, weight+s.Weight
					}
				}
				got += fmt.Sprintf("%s %d %d, ", e.Name, count, weight)
			}
			first := p.Locations[p.Leaves[p.Samples[0].Stack]]
			if got += fmt.Sprintf("leaf %#x", uint64(first.Offset)+objectStart(p.Objects[first.Object].File.Path)); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// objectStart is where legacyMaps maps a file.
func objectStart(path string) uint64 {
	if path == "/srv/app/bin/app" {
		return 0x400000
	}
	return 0
}

// TestLegacyTotals: the sums of columns are those of google/pprof.
func TestLegacyTotals(t *testing.T) {
	text, err := fromJemalloc([]byte(jemallocHeap + legacyMaps))
	if err != nil {
		t.Fatal(err)
	}
	want, err := profile.ParseData(text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Read("x", []byte(jemallocHeap+legacyMaps), ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var ours, theirs [2]int64
	for i := range p.Samples {
		ours[0], ours[1] = ours[0]+int64(p.Samples[i].Count), ours[1]+int64(p.Samples[i].Weight)
	}
	for _, s := range want.Sample {
		theirs[0], theirs[1] = theirs[0]+s.Value[0], theirs[1]+s.Value[1]
	}
	if ours != theirs {
		t.Errorf("%v, want %v", ours, theirs)
	}
}

// TestJemallocDamaged: an error has the line.
func TestJemallocDamaged(t *testing.T) {
	for text, want := range map[string]string{
		"heap_v2/x\n":                         `x: offset 0x0: line 1: "x" is not a sampling rate`,
		"heap_v2/1\n@ 0x400101\n  t*: 1: 2\n": "x: offset 0x0: line 3: neither counts nor a stack",
		"heap_v2/1\n@ 0x400101\n  t*: 1: 99999999999999999999 [0: 0]\n": "x: offset 0x0: line 3: strconv.ParseInt: " +
			`parsing "99999999999999999999": value out of range`,
	} {
		if _, err := Read("x", []byte(text), ReadOptions{}); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// FuzzLegacy: no input makes a reader fail otherwise than by an error.
func FuzzLegacy(f *testing.F) {
	f.Add([]byte(jemallocHeap + legacyMaps))
	f.Add([]byte("heap profile: 2: 300 [ 5: 900] @ heapprofile\n  2: 300 [ 5: 900] @ 0x400101 0x400201\n" + legacyMaps))
	f.Add([]byte(binaryCPU(binary.LittleEndian, 8)))
	f.Add([]byte("--- heapz 1 ---\nformat = java\nresolution=bytes\n2: 300 [ 2: 300] @ 0x1\n0x00000001 a (B.java:7)\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<12 || !isLegacy(data) {
			return
		}
		p, err := Read("x", bytes.Clone(data), ReadOptions{})
		if err == nil && len(p.Events) == 0 {
			t.Error("a profile without events")
		}
	})
}
