package record

import (
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/ingest/record/sampler"
)

func TestParseStat(t *testing.T) {
	const whole = "77 (a) b (c)) S 1 77 77 0 -1 4194560 111 222 0 0 3 4 0 0 20 0 1 0 5555 666 77 " +
		"18446744073709551615 4096 8192 140000 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 9000 9100 12288 1 2 3 4 0\n"
	want := sampler.ProgramFacts{StartTicks: 5555, EndCode: 8192, StartStack: 140000, StartBrk: 12288}
	if got, ok := parseStat([]byte(whole)); !ok || got != want {
		t.Errorf("%+v, %v, want %+v", got, ok, want)
	}
	last := strings.Index(whole, " 12288") + len(" 12288")
	for n := range last {
		if got, ok := parseStat([]byte(whole[:n])); ok && got == want {
			t.Errorf("the first %d bytes: %+v", n, got)
		}
	}
	for _, text := range []string{"", "77 (", strings.Replace(whole, "5555", "-1", 1)} {
		if got, ok := parseStat([]byte(text)); ok {
			t.Errorf("%q: %+v", text, got)
		}
	}
	r := newTestRoot(t)
	p := r.processes(r.session(&Options{}))
	r.write("proc/77/stat", whole)
	r.run(1, 1)
	if own := p.program(77); own == 0 || own != p.program(77) || own == p.program(1) {
		t.Errorf("its program %#x, that of process 1 %#x", own, p.program(1))
	}
	if gone := p.program(78); gone != 0 {
		t.Errorf("no process has the program %#x", gone)
	}
}

func TestBootTicks(t *testing.T) {
	r := newTestRoot(t)
	for text, want := range map[string]uint64{
		"monotonic           0         0\nboottime           12 340000000\n": 1234,
		"monotonic 5 0\nboottime -1 500000000\n":                             ^uint64(49),
		"boottime 1\n":                                                       0, "": 0,
	} {
		r.write("offsets", text)
		if got := bootTicks(r.dir + "/offsets"); got != want {
			t.Errorf("%q: %d, want %d", text, int64(got), int64(want))
		}
	}
}

// TestReadOf: mappings that were read while a process ran one program and then another are of
// neither.
func TestReadOf(t *testing.T) {
	r := newTestRoot(t)
	p := r.processes(r.session(&Options{}))
	p.identify(buildid.ID{})
	r.write("proc/50/maps", "1000-2000 r-xp 00000000 00:00 0 \n")
	r.run(50, 1)
	first := p.program(50)
	if p.readOf(50, first, func() bool { return false }) || len(p.kept[50]) != 0 {
		t.Errorf("mappings of two programs are kept: %v", p.kept[50])
	}
	p.read(50)
	r.run(50, 2)
	x := newPlaces(p)
	for _, c := range []struct {
		program uint64
		want    sampler.PlaceKind
	}{{program: first, want: sampler.Mapped}, {program: p.program(50), want: sampler.Unread}, {program: 0,
		want: sampler.Ambiguous}} {
		if got := x.Locate(sampler.Process{PID: 50, Program: c.program}, 0x1010).Kind; got != c.want {
			t.Errorf("program %#x: %v, want %v", c.program, got, c.want)
		}
	}
	p.read(50) // the text is the same, the program another
	x = newPlaces(p)
	for i, program := range []uint64{p.program(50), first} {
		of := sampler.Process{PID: 50, Program: program}
		if n := x.Number(of, []int{x.Locate(of, 0x1010).Mapping}); n != uint32(i) || len(p.kept[50]) != 2 {
			t.Errorf("copies %v, of program %d number %d", p.kept[50], i, n)
		}
	}
}
