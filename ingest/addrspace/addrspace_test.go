package addrspace

import (
	"bufio"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/ingest/addr"
)

// scenario runs the little language of testdata/*.txt: each line is a change of state or a
// question, with the answer behind "=>".
//
//	TIME map PID OBJECT START-END[@PGOFF]
//	TIME comm PID/TID NAME        TIME exec PID/TID NAME
//	TIME fork PPID/PTID PID/TID   TIME synthesized PPID/PTID PID/TID
//	TIME kernel LAYER OBJECT START-END[@PGOFF]
//	TIME gone LAYER START-END
//	TIME loaded PID
//	askbefore TIME PID ADDR => OBJECT+OFFSET | none
//	ask TIME PID ADDR => OBJECT+OFFSET | none
//	askkernel TIME ADDR => OBJECT+OFFSET | none
//	asksteady ADDR => yes | no
//	askever ADDR => OBJECT+OFFSET … | none   (in all versions of the kernel with a mapping)
//	askcomm TIME TID => NAME | none
//	asksame TIME PID TIME PID => yes | no     (are the two states one version?)
type scenario struct {
	t       *testing.T
	b       *Builder
	m       *Map
	objects []string
	comms   []string
	where   string
}

func number(list *[]string, name string) uint32 {
	i := slices.Index(*list, name)
	if i < 0 {
		i = len(*list)
		*list = append(*list, name)
	}
	return uint32(i)
}

func (s *scenario) scan(text, format string, args ...any) {
	s.t.Helper()
	if _, err := fmt.Sscanf(text, format, args...); err != nil {
		s.t.Fatalf("%s: %q does not read as %q: %v", s.where, text, format, err)
	}
}

// mapping parses "OBJECT START-END[@PGOFF]", numbers in hexadecimal.
func (s *scenario) mapping(object, at string) Mapping {
	m := Mapping{Object: number(&s.objects, object)}
	at, pgoff, _ := strings.Cut(at, "@")
	s.scan(at, "%x-%x", &m.Start, &m.End)
	if pgoff != "" {
		s.scan(pgoff, "%x", &m.PgOff)
	}
	return m
}

var layers = map[string]Layer{"around": Around, "base": Base, "image": Image, "program": Program}

func (s *scenario) change(f []string) {
	var t uint64
	var pid, tid, ppid, ptid int32
	s.scan(f[0], "%d", &t)
	switch f[1] {
	case "map":
		s.scan(f[2], "%d", &pid)
		s.b.Map(t, pid, s.mapping(f[3], f[4]))
	case "comm", "exec":
		s.scan(f[2], "%d/%d", &pid, &tid)
		s.b.Comm(t, pid, tid, number(&s.comms, f[3]), f[1] == "exec")
	case "fork", "synthesized":
		s.scan(f[2], "%d/%d", &ppid, &ptid)
		s.scan(f[3], "%d/%d", &pid, &tid)
		s.b.Fork(t, pid, tid, ppid, ptid, f[1] == "synthesized")
	case "loaded":
		s.scan(f[2], "%d", &pid)
		s.b.Loaded(pid)
	case "kernel":
		s.b.Kernel(t, layers[f[2]], s.mapping(f[3], f[4]))
	case "gone":
		m := s.mapping("", f[3])
		s.b.KernelGone(t, layers[f[2]], m.Start, m.End)
	default:
		s.t.Fatalf("%s: no such change", s.where)
	}
}

func (s *scenario) found(m *Mapping, pc addr.PC) string {
	if m == nil {
		return "none"
	}
	return fmt.Sprintf("%s+%#x", s.objects[m.Object], uint64(m.Offset(pc)))
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func (s *scenario) ask(f []string) string {
	if s.m == nil {
		s.m = s.b.Build()
	}
	var t, t2 uint64
	var pid, pid2 int32
	var pc addr.PC
	switch f[0] {
	case "ask", "askbefore":
		s.scan(strings.Join(f[1:4], " "), "%d %d %x", &t, &pid, &pc)
		span := s.m.Process(pid, t)
		if !span.Holds(t) {
			return fmt.Sprintf("span %v does not hold", span)
		}
		if f[0] == "askbefore" {
			return s.found(s.m.Before(span.Version(), pc), pc)
		}
		return s.found(s.m.User(span.Version(), pc), pc)
	case "askkernel":
		s.scan(strings.Join(f[1:3], " "), "%d %x", &t, &pc)
		span := s.m.Kernel(t)
		if !span.Holds(t) {
			return fmt.Sprintf("span %v does not hold", span)
		}
		return s.found(s.m.InKernel(span.Version(), pc), pc)
	case "askever":
		s.scan(f[1], "%x", &pc)
		var list []string
		for v := range s.m.KernelVersions(pc, pc) {
			if x := s.found(s.m.InKernel(v, pc), pc); !slices.Contains(list, x) {
				list = append(list, x)
			}
		}
		return strings.Join(list, " ")
	case "asksteady":
		s.scan(f[1], "%x", &pc)
		return yes(s.m.Steady(pc))
	case "askcomm":
		s.scan(strings.Join(f[1:3], " "), "%d %d", &t, &pid)
		span := s.m.Thread(pid, t)
		if !span.Holds(t) {
			return fmt.Sprintf("span %v does not hold", span)
		}
		if span.Value == NoComm {
			return "none"
		}
		return s.comms[span.Value]
	case "asksame":
		s.scan(strings.Join(f[1:5], " "), "%d %d %d %d", &t, &pid, &t2, &pid2)
		return yes(s.m.Process(pid, t).Version() == s.m.Process(pid2, t2).Version())
	}
	s.t.Fatalf("%s: no such question", s.where)
	return ""
}

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			f, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			s := scenario{t: t, b: NewBuilder()}
			questions := 0
			sc := bufio.NewScanner(f)
			for line := 1; sc.Scan(); line++ {
				text, _, _ := strings.Cut(sc.Text(), "#")
				if strings.TrimSpace(text) == "" {
					continue
				}
				s.where = fmt.Sprintf("%s:%d", name, line)
				q, want, isQuestion := strings.Cut(text, "=>")
				if !isQuestion {
					s.change(strings.Fields(text))
					continue
				}
				questions++
				if got := s.ask(strings.Fields(q)); got != strings.TrimSpace(want) {
					t.Errorf("%s: %s=> %s, want %s", s.where, q, got, strings.TrimSpace(want))
				}
			}
			if questions == 0 {
				t.Errorf("%s asks nothing", name)
			}
		})
	}
}

// model is the plain way to keep an address space: a mapping for every unit of
// addresses.
type model map[int]uint32

// TestAgainstModel makes random changes to a Builder and to the plain model, and compares all
// addresses at all times: changes to one version do not affect others that share nodes with it.
func TestAgainstModel(t *testing.T) {
	const units, procs, steps = 48, 6, 400
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b := NewBuilder()
		now := [procs]model{}
		for i := range now {
			now[i] = model{}
		}
		history := make([][procs]model, steps)
		time := uint64(0)
		times := make([]uint64, steps)
		for i := range steps {
			if rng.IntN(3) > 0 {
				time++
			}
			pid := rng.IntN(procs)
			switch op := rng.IntN(20); {
			case op < 2:
				parent := rng.IntN(procs)
				if parent != pid {
					b.Fork(time, int32(pid), int32(pid), int32(parent), int32(parent), false)
					now[pid] = maps.Clone(now[parent])
				}
			case op == 2:
				b.Comm(time, int32(pid), int32(pid), 1, true)
				now[pid] = model{}
			default:
				start := rng.IntN(units)
				end := min(units, start+1+rng.IntN(8))
				object := uint32(1 + rng.IntN(3))
				b.Map(time, int32(pid), Mapping{Start: addr.PC(start), End: addr.PC(end), Object: object,
					PgOff: uint64(start)})
				for u := start; u < end; u++ {
					now[pid][u] = object
				}
			}
			times[i] = time
			for p := range now {
				history[i][p] = maps.Clone(now[p])
			}
		}
		m := b.Build()
		for i := range steps {
			if i+1 < steps && times[i+1] == times[i] {
				continue // the state at a time is the one after all its changes
			}
			for p := range procs {
				v := m.Process(int32(p), times[i]).Version()
				for u := range units {
					want, mapped := history[i][p][u]
					got := m.User(v, addr.PC(u))
					if mapped != (got != nil) || mapped && (got.Object != want ||
						got.Offset(addr.PC(u)) != addr.Offset(u)) {
						t.Fatalf("seed %d, time %d, process %d, address %d: %+v, want object %d %v", seed, times[i],
							p, u, got, want, mapped)
					}
				}
				checkSame(t, m, v, m.Process(int32((p+1)%procs), times[i]).Version(),
					history[i][p], history[i][(p+1)%procs], units)
			}
		}
	}
}

// checkSame compares Same with the models of two versions. All mappings of an object have the same
// offsets.
func checkSame(t *testing.T, m *Map, v, w Version, a, b model, units int) {
	t.Helper()
	for u := range units {
		x, mapped := a[u]
		y, both := b[u]
		start, end, ok := m.Same(v, w, addr.PC(u))
		if ok != (mapped && both && x == y) || ok && (u < int(start) || u >= int(end)) {
			t.Fatalf("Same of address %d, objects %d and %d: [%d, %d) %v", u, x, y, start, end, ok)
		}
		for i := int(start); i < int(end); i++ {
			if a[i] != x || b[i] != x {
				t.Fatalf("Same of address %d: [%d, %d) has objects %d and %d", u, start, end, a[i], b[i])
			}
		}
	}
}

// TestSameOffsets: one file at other offsets is not the same.
func TestSameOffsets(t *testing.T) {
	b := NewBuilder()
	for pid, off := range []uint64{0, 0x1000, 0x2000, 0x1000} {
		b.Map(0, int32(pid), Mapping{Start: 0x1000, End: 0x3000, PgOff: off, Object: 1})
	}
	m := b.Build()
	version := func(pid int32) Version { return m.Process(pid, 1).Version() }
	for _, c := range []struct {
		a, b int32
		want bool
	}{{0, 1, false}, {1, 2, false}, {1, 3, true}, {2, 2, true}} {
		if _, _, ok := m.Same(version(c.a), version(c.b), 0x2000); ok != c.want {
			t.Errorf("Same of processes %d and %d: %v", c.a, c.b, ok)
		}
	}
}

// TestManyMappings bounds the memory of one process with very many mappings: each
// change copies a path, not the whole.
func TestManyMappings(t *testing.T) {
	const n = 20000
	b := NewBuilder()
	for i := range uint64(n) {
		start := addr.PC(i * 7919 % n * 0x1000)
		b.Map(i+1, 1, Mapping{Start: start, End: start + 0x1000, Object: uint32(i)})
	}
	m := b.Build()
	if per := float64(m.forest.n) / n; per > 60 {
		t.Errorf("%.0f tree nodes for a mapping", per)
	}
	for _, i := range []uint64{0, 1, n / 2, n - 1} {
		start := addr.PC(i * 7919 % n * 0x1000)
		if got := m.User(m.Process(1, i+1).Version(), start+5); got == nil || got.Object != uint32(i) {
			t.Errorf("mapping %d at its time: %+v", i, got)
		}
		if got := m.User(m.Process(1, i).Version(), start+5); got != nil {
			t.Errorf("mapping %d before its time: %+v", i, got)
		}
	}
}

// TestBurstInPlace checks that a burst of changes at one time makes one version and no garbage.
func TestBurstInPlace(t *testing.T) {
	b := NewBuilder()
	for i := range 1000 {
		b.Map(0, 1, Mapping{Start: addr.PC(i) * 0x2000, End: addr.PC(i)*0x2000 + 0x1000,
			Object: uint32(i)})
	}
	m := b.Build()
	if v, _ := m.Versions(); v != 2 {
		t.Errorf("%d versions, want the empty one and one more", v)
	}
	if m.forest.n > 1001 {
		t.Errorf("%d nodes for 1000 mappings", m.forest.n)
	}
}

// TestAnywhere checks that the filter never excludes an address that is mapped, and
// excludes most others.
func TestAnywhere(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	b := NewBuilder()
	var mapped []Mapping
	for i := range 500 {
		start := addr.PC(0x7f0000000000 + rng.Uint64N(1<<36))
		m := Mapping{Start: start, End: start + addr.PC(1+rng.Uint64N(1<<20)), Object: uint32(i)}
		if i == 7 {
			m = Mapping{Start: 1 << 40, End: 1<<40 + 1<<36} // kept as a range
		}
		b.Map(uint64(i), int32(i%9), m)
		mapped = append(mapped, m)
	}
	m := b.Build()
	for _, mp := range mapped {
		for _, pc := range []addr.PC{mp.Start, mp.End - 1, mp.Start + (mp.End-mp.Start)/2} {
			if !m.Anywhere(pc) {
				t.Fatalf("%#x is in %+v, and denied", pc, mp)
			}
		}
	}
	passed := 0
	for range 1000 {
		if m.Anywhere(addr.PC(0x1000 + rng.Uint64N(1<<38))) {
			passed++
		}
	}
	if passed > 250 {
		t.Errorf("%d of 1000 addresses where nothing is mapped pass", passed)
	}
	// Over the limits of the filter, every address passes, and quickly.
	b = NewBuilder()
	for i := range uint64(30000) {
		start := addr.PC(i << 20)
		b.Map(i, 1, Mapping{Start: start, End: start + maxGranules<<granuleBits, Object: uint32(i)})
	}
	if m := b.Build(); !m.Anywhere(1 << 61) {
		t.Error("the filter still denies")
	}
	if m := NewBuilder().Build(); m.Anywhere(0x400000) {
		t.Error("something is mapped in an empty history")
	}
}

// BenchmarkManyMappings counts 100 bytes for each mapping, as much as its record has.
func BenchmarkManyMappings(b *testing.B) {
	const mappings = 100_000
	b.SetBytes(100 * mappings)
	b.ReportAllocs()
	for b.Loop() {
		bl := NewBuilder()
		for i := range uint64(mappings) {
			start := addr.PC(i * 7919 % 100000 * 0x1000)
			bl.Map(i+1, 1, Mapping{Start: start, End: start + 0x1000, Object: uint32(i)})
		}
		bl.Build()
	}
}

func BenchmarkUser(b *testing.B) {
	bl := NewBuilder()
	for i := range 200 {
		bl.Map(0, 1, Mapping{Start: addr.PC(i) * 0x2000, End: addr.PC(i)*0x2000 + 0x1000,
			Object: uint32(i)})
	}
	m := bl.Build()
	v := m.Process(1, 5).Version()
	i := uint64(0)
	for b.Loop() {
		i = i*6364136223846793005 + 1442695040888963407
		m.User(v, addr.PC(i%(200*0x2000)))
	}
}
