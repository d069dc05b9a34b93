package input

import (
	"encoding/binary"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/bundlebuild"
	"symbolize/fixtures/must"
	"symbolize/ingest"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/rawdump"
)

// timedKey has the fields that capture --stacks writes since format 3 of bundles.
const timedKey = "user_stack_id:0:4,kernel_stack_id:4:4,tgid:8:4,comm:12:16,program:28:4,kernel_time:32:8,user_time:40:8"

// timedCount is a key of timedKey.
type timedCount struct {
	user, kernel int32
	comm         string
	program      uint32
	time         uint64
	userTime     uint64
}

// timedBundle writes a bundle of a host with these samples, one of each.
func timedBundle(t *testing.T, h *bundlebuild.Host, user, kernel []byte, counts []timedCount) string {
	t.Helper()
	var pairs [][2][]byte
	for _, c := range counts {
		key := binary.LittleEndian.AppendUint32(nil, uint32(c.user))
		key = binary.LittleEndian.AppendUint32(key, uint32(c.kernel))
		key = binary.LittleEndian.AppendUint32(key, bundlebuild.Process)
		key = append(key, (c.comm + strings.Repeat("\x00", 16))[:16]...)
		key = binary.LittleEndian.AppendUint32(key, c.program)
		key = binary.LittleEndian.AppendUint64(key, c.time)
		key = binary.LittleEndian.AppendUint64(key, c.userTime)
		pairs = append(pairs, [2][]byte{key, {1, 0, 0, 0, 0, 0, 0, 0}})
	}
	dump, err := rawdump.Append(nil, rawdump.Header{Type: 1, KeySize: 48, ValueSize: 8,
		Name: "counts"}, pairs)
	if err != nil {
		t.Fatal(err)
	}
	h.Entries[bundle.DumpName("stacks")] = user
	h.Entries[bundle.DumpName("kernel_stacks")] = kernel
	h.Entries[bundle.DumpName("counts")] = dump
	h.Manifest = map[string]any{"format": 3, "samples": []bundle.Samples{{Event: "cpu-clock",
		Unit: "count", Period: 1, Stacks: bundle.DumpName("stacks"),
		KernelStacks: bundle.DumpName("kernel_stacks"), Counts: bundle.DumpName("counts"),
		Key: timedKey, Value: "0:8"}}}
	path := filepath.Join(t.TempDir(), "stacks.data")
	must.Write(t, path, h.Bundle())
	return path
}

// TestKernelTimes: an address of two successive BPF programs belongs to the program that was loaded
// when the stack was recorded, by the times of the records.
func TestKernelTimes(t *testing.T) {
	const none, ip = -14, 2
	h := bundlebuild.NewHost()
	h.Entries = make(map[string][]byte)
	kernel := stackDump(t, [][]byte{stackRecord(ip, "", bundlebuild.SlotA+0x10),
		stackRecord(ip, "", h.Text+bundlebuild.DoWork+5)},
		[][]byte{stackRecord(ip, "", bundlebuild.Module+0x10)},
		[][]byte{stackRecord(ip, "", h.Text+bundlebuild.DoWork)})
	path := timedBundle(t, h, stackDump(t), kernel, []timedCount{
		{user: none, kernel: 0, comm: "before", program: 0, time: 0},
		{user: none, kernel: 0, comm: "load A", program: 0, time: bundlebuild.LoadA},
		{user: none, kernel: 0, comm: "in A", program: 0, time: bundlebuild.SampleA},
		{user: none, kernel: 0, comm: "gone", program: 0, time: bundlebuild.UnloadA},
		{user: none, kernel: 0, comm: "in B", program: 0, time: bundlebuild.LoadB},
		{user: none, kernel: 0, comm: "lost", program: 0, time: bundle.UnknownTime},
		{user: none, kernel: 1, comm: "no module", program: 0, time: 0},
		{user: none, kernel: 1, comm: "module", program: 0, time: bundlebuild.LoadB},
		{user: none, kernel: 1, comm: "lost module", program: 0, time: bundle.UnknownTime},
		{user: none, kernel: 2, comm: "kernel", program: 0, time: 0},
		{user: none, kernel: 2, comm: "lost kernel", program: 0, time: bundle.UnknownTime},
	})
	_, p := foldPath(t, path, Options{})
	got := make(map[string]string)
	for _, s := range p.Samples {
		o := &p.Objects[p.Locations[p.Stack(nil, s.Stack)[0]].Object]
		got[p.Strings[s.Comm]] = o.File.Path
		if o.File.Path == ingest.AmbiguousKernelPath && o.Reason != ingest.AddressReused {
			t.Errorf("%s: reason %v", p.Strings[s.Comm], o.Reason)
		}
	}
	a, b := bundlebuild.Symbol(&h.A, 0), bundlebuild.Symbol(&h.B, 0)
	for comm, want := range map[string]string{
		"before": ingest.UnmappedKernelPath, "load A": a, "in A": a,
		"gone": ingest.UnmappedKernelPath, "in B": b, "lost": ingest.AmbiguousKernelPath,
		"no module": ingest.UnmappedKernelPath, "module": "[worker_mod]",
		"lost module": ingest.AmbiguousKernelPath,
		"kernel":      ingest.KernelMapName, "lost kernel": ingest.KernelMapName,
	} {
		if got[comm] != want {
			t.Errorf("%s: %q, want %q", comm, got[comm], want)
		}
	}
}

// TestProgramsOfProcess: an address in a process is looked up in the mappings of the program that
// ran; one that mappings explain in two ways is ambiguous, and of a program without mappings
// nothing is known.
func TestProgramsOfProcess(t *testing.T) {
	const none, ip = -14, 2
	h := bundlebuild.NewHost()
	h.Entries = map[string][]byte{
		bundle.ProgramMapsName(bundlebuild.Process, 1): []byte(
			"555500000000-555500001000 r-xp 00000000 08:01 55 /srv/app/older\n"),
		bundle.ProgramMapsName(bundlebuild.Process+1, 1): []byte(
			"555500000000-555500001000 r-xp 00000000 08:01 55 /srv/app/of-nobody\n"),
	}
	user := stackDump(t, [][]byte{stackRecord(ip, "", bundlebuild.UserText+0x10)},
		[][]byte{stackRecord(ip, "", bundle.AmbiguousAddress)},
		[][]byte{stackRecord(ip, "", bundle.GoneAddress)})
	path := timedBundle(t, h, user, stackDump(t), []timedCount{
		{user: 0, kernel: none, comm: "newest", program: 0, time: 0}, {user: 0, kernel: none,
			comm: "older", program: 1, time: 0}, {user: 0, kernel: none, comm: "no maps",
			program: 2, time: 0},
		{user: 1, kernel: none, comm: "ambiguous", program: 0, time: 0}, {user: 2, kernel: none,
			comm: "gone", program: 0, time: 0}})
	_, p := foldPath(t, path, Options{})
	var got []string
	for _, s := range p.Samples {
		o := &p.Objects[p.Locations[p.Stack(nil, s.Stack)[0]].Object]
		got = append(got, p.Strings[s.Comm]+": "+o.File.Path+" "+o.Reason.String())
	}
	slices.Sort(got)
	if want := []string{"ambiguous: [ambiguous] address reused", "gone: [unmapped] process gone",
		"newest: /srv/app/worker no build ID", "no maps: [unmapped] mappings not saved",
		"older: /srv/app/older no build ID"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
