package input

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"symbolize/ingest"
	"symbolize/ingest/intern"
)

// TestRadixSort compares with a sort that is known to be stable.
func TestRadixSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 100, 5000} {
		for _, most := range []uint32{1, 3, 1 << 11, 1 << 20, math.MaxUint32} {
			keys := make([]uint32, n)
			order := make([]uint32, n)
			for i := range keys {
				keys[i], order[i] = rng.Uint32N(most), uint32(i)
			}
			want := slices.Clone(order)
			slices.SortStableFunc(want, func(a, b uint32) int {
				return int(int64(keys[a]) - int64(keys[b]))
			})
			if got := radixSort(order, func(i uint32) uint32 { return keys[i] }); !slices.Equal(got, want) {
				t.Errorf("%d keys below %d are not sorted, or not stably", n, most)
			}
		}
	}
}

// TestSortParts sorts lists with long common beginnings, on several goroutines.
func TestSortParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var locs []ingest.LocationID
	var parts []partRef
	for i := range 3 * parallelSort {
		at := len(locs)
		for range rng.IntN(5) {
			locs = append(locs, 7)
		}
		for range rng.IntN(6) {
			locs = append(locs, ingest.LocationID(rng.IntN(4)))
		}
		parts = append(parts, partRef{uint32(at), uint32(len(locs) - at), uint32(i)})
	}
	list := func(r partRef) []ingest.LocationID { return locs[r.at : r.at+r.n] }
	sortParts(locs, parts, 0, nil)
	seen := make([]bool, len(parts))
	for i, r := range parts {
		if seen[r.source] {
			t.Fatalf("part %d is there twice", r.source)
		}
		seen[r.source] = true
		if i > 0 && slices.Compare(list(parts[i-1]), list(r)) > 0 {
			t.Fatalf("%v comes before %v", list(parts[i-1]), list(r))
		}
	}
}

// randomShards makes shards with overlapping places, parts and rows. Both kinds of
// parts draw from the same places, so that stacks come about in several ways.
func randomShards(rng *rand.Rand, n int) []*shard {
	var shards []*shard
	var set labelSet
	for range 6 {
		set.number(labels{comm: rng.Uint32N(3), pid: -1, tid: rng.Int32N(2), cpu: -1,
			event: uint16(rng.IntN(2))})
	}
	for range n {
		s := &shard{
			labels: set.list, objects: []ingest.ObjectID{2, 0, 1},
			comms: func(code uint32) ingest.StringID { return ingest.StringID(2 - code) },
		}
		for i := range 12 {
			s.places = append(s.places,
				intern.Pair{Object: uint32(i % 3), Offset: uint64(rng.IntN(3))})
		}
		rng.Shuffle(len(s.places), func(i, j int) {
			s.places[i], s.places[j] = s.places[j],
				s.places[i]
		})
		for role := range numRoles {
			lists := new(intern.Lists)
			lists.Add(nil)
			for range 40 {
				list := make([]uint32, rng.IntN(4))
				for k := range list {
					list[k] = rng.Uint32N(uint32(len(s.places)))
				}
				lists.Add(list)
			}
			s.parts[role] = lists
		}
		for range 3 {
			var rows []row
			for range 60 {
				rows = append(rows, row{kernel: rng.Uint32N(41), user: rng.Uint32N(41),
					label: rng.Uint32N(uint32(len(set.list))), count: 1 + rng.Uint32N(5),
					weight: rng.Uint64N(100)})
			}
			s.rows = append(s.rows, rows)
		}
		shards = append(shards, s)
	}
	return shards
}

// plainly folds shards in the plainest way: a line for each sample.
func plainly(shards []*shard) map[string][2]uint64 {
	sums := map[string][2]uint64{}
	for _, s := range shards {
		for _, rows := range s.rows {
			for _, r := range rows {
				l := s.labels[r.label]
				line := fmt.Sprint(l.event, s.comms(l.comm), l.pid, l.tid, l.cpu)
				for role, part := range [numRoles]uint32{r.kernel, r.user} {
					for _, loc := range s.parts[role].At(part) {
						pl := s.places[loc]
						line += fmt.Sprintf(" %d+%d", s.objects[pl.Object], pl.Offset)
					}
				}
				old := sums[line]
				sums[line] = [2]uint64{old[0] + uint64(r.count), old[1] + r.weight}
			}
		}
	}
	return sums
}

// TestAssemble compares the assembled profile with the plain way, and holds that
// the order of the shards is nothing to it.
func TestAssemble(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 5))
		n := 1 + rng.IntN(4)
		again := rand.New(rand.NewPCG(seed, 5))
		again.IntN(4)
		shards, turned := randomShards(rng, n), randomShards(again, n)
		slices.Reverse(turned)
		want := plainly(shards)
		p, q := &ingest.Profile{Strings: make([]string, 3)},
			&ingest.Profile{Strings: make([]string, 3)}
		assemble(p, shards)
		assemble(q, turned)
		if !reflect.DeepEqual(p, q) {
			t.Fatalf("seed %d: another order of the shards, another profile", seed)
		}
		for i := 1; i < len(p.StackEnds); i++ {
			if slices.Compare(p.Stack(ingest.StackID(i-1)), p.Stack(ingest.StackID(i))) >= 0 {
				t.Fatalf("seed %d: stacks %d and %d are not in order", seed, i-1, i)
			}
		}
		got := map[string][2]uint64{}
		for i, s := range p.Samples {
			if i > 0 && ingest.CompareSamples(p.Samples[i-1], s) >= 0 {
				t.Fatalf("seed %d: samples %d and %d are not in order", seed, i-1, i)
			}
			line := fmt.Sprint(s.Event, s.Comm, s.PID, s.TID, s.CPU)
			for _, l := range p.Stack(s.Stack) {
				line += fmt.Sprintf(" %d+%d", p.Locations[l].Object, p.Locations[l].Offset)
			}
			got[line] = [2]uint64{s.Count, s.Weight}
		}
		if len(got) != len(p.Samples) || !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %d samples, want %d", seed, len(p.Samples), len(want))
		}
	}
}

func TestRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 7))
	table := newRowTable()
	want := map[row]uint64{}
	for range 30000 {
		r := row{kernel: rng.Uint32N(30), user: rng.Uint32N(300), label: rng.Uint32N(2), count: 1,
			weight: 3}
		table.add(r)
		want[row{kernel: r.kernel, user: r.user, label: r.label}]++
	}
	rows := 0
	for _, list := range table.lists() {
		for _, r := range list {
			rows++
			n := want[row{kernel: r.kernel, user: r.user, label: r.label}]
			if uint64(r.count) != n || r.weight != 3*n {
				t.Fatalf("%+v, want %d samples", r, n)
			}
		}
	}
	if rows != len(want) {
		t.Errorf("%d rows, want %d", rows, len(want))
	}
}

// TestRowsCountOn lets a row's 32-bit count run full.
func TestRowsCountOn(t *testing.T) {
	table := newRowTable()
	for range 5 {
		table.add(row{kernel: 1, count: math.MaxUint32 - 1, weight: 10})
		table.add(row{kernel: 1, count: 1, weight: 1})
	}
	count, weight := uint64(0), uint64(0)
	for _, list := range table.lists() {
		for _, r := range list {
			count += uint64(r.count)
			weight += r.weight
		}
	}
	if count != 5*math.MaxUint32 || weight != 55 {
		t.Errorf("%d samples of weight %d, want %d of 55", count, weight, uint64(5*math.MaxUint32))
	}
}

func TestCompareObjects(t *testing.T) {
	base := ingest.Object{Kind: ingest.ELF, File: ingest.FileRef{Path: "/b"}, RefSymbol: "r",
		Symbol: "s", Length: 5,
		PID: 5, Capture: "c"}
	if ingest.CompareObjects(&base, &base) != 0 {
		t.Error("an object differs from itself")
	}
	for i, change := range []func(*ingest.Object){
		func(o *ingest.Object) { o.Kind = ingest.VDSO },
		func(o *ingest.Object) { o.File.Path = "/c" },
		func(o *ingest.Object) { o.RefSymbol = "s" },
		func(o *ingest.Object) { o.Symbol = "t" },
		func(o *ingest.Object) { o.Length++ },
		func(o *ingest.Object) { o.PID++ },
		func(o *ingest.Object) { o.Capture = "d" },
		func(o *ingest.Object) { o.File.Deleted = true },
		func(o *ingest.Object) { o.File.Major++ },
		func(o *ingest.Object) { o.File.Minor++ },
		func(o *ingest.Object) { o.File.Inode++ },
		func(o *ingest.Object) { o.File.Generation++ },
		func(o *ingest.Object) { o.Reason = ingest.Ambiguous },
	} {
		o := base
		change(&o)
		if ingest.CompareObjects(&base, &o) >= 0 || ingest.CompareObjects(&o, &base) <= 0 {
			t.Errorf("change %d does not order the objects", i)
		}
	}
}

func TestDomains(t *testing.T) {
	for _, tc := range []struct {
		kind ingest.ObjectKind
		path string
		want ingest.Domain
	}{
		{ingest.ELF, "/bin/x", ingest.UserDomain}, {ingest.VDSO, "[vdso]", ingest.UserDomain},
		{ingest.Kernel, ingest.KernelMapName, ingest.KernelDomain},
		{ingest.Module, "[ext4]", ingest.KernelDomain},
		{ingest.JIT, "bpf_prog_x", ingest.BPFDomain}, {ingest.JIT, "bpf_trampoline_1",
			ingest.BPFDomain},
		{ingest.JIT, "kprobe_insn_page", ingest.KernelDomain},
		{ingest.PerfMap, "", ingest.JITDomain}, {ingest.Anonymous, ingest.AnonymousPath,
			ingest.JITDomain},
		{ingest.Unmapped, ingest.UnmappedPath, ingest.UserDomain},
		{ingest.Unmapped, ingest.UnmappedKernelPath, ingest.KernelDomain},
		{ingest.NoStack, ingest.NoStackPath, ingest.UserDomain},
		{ingest.Hypervisor, ingest.HypervisorPath, ingest.KernelDomain},
	} {
		o := ingest.Object{Kind: tc.kind, File: ingest.FileRef{Path: tc.path}}
		if got := o.Domain(); got != tc.want {
			t.Errorf("%s is in domain %d, want %d", tc.path, got, tc.want)
		}
	}
}
