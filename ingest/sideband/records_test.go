package sideband

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest/format/perfdata"
)

// TestCounts: the counts of lost records and of throttled events.
func TestCounts(t *testing.T) {
	for _, tc := range []struct {
		name            string
		build           func(f *perfbuild.File)
		lost, throttled uint64
	}{
		{name: "none", build: func(f *perfbuild.File) { f.Comm(7, 7, "a", false, at(1)) }},
		{name: "records of several rings", build: func(f *perfbuild.File) {
			f.Lost(11, 3, at(1))
			f.Lost(12, 4, at(2))
		}, lost: 7},
		{name: "samples", build: func(f *perfbuild.File) { f.LostSamples(5, false, at(1)) }, lost: 5},
		{name: "samples that a filter dropped are not lost", build: func(f *perfbuild.File) {
			f.LostSamples(5, true, at(1))
			f.LostSamples(2, false, at(2))
		}, lost: 2},
		{name: "counted by the kernel, and by perf at the end", build: func(f *perfbuild.File) {
			f.Lost(11, 5, at(1)) // records of the other event, too
			f.Lost(12, 3, at(2))
			f.LostSamples(2, false, perfbuild.At{ID: 11})
			f.LostSamples(6, false, perfbuild.At{ID: 12})
		}, lost: 8},
		{name: "lost after the last record, too", build: func(f *perfbuild.File) {
			f.Lost(11, 5, at(1))
			f.LostSamples(9, false, perfbuild.At{ID: 11})
		}, lost: 9},
		{name: "other records than samples, too", build: func(f *perfbuild.File) {
			f.Lost(11, 5, at(1))
			f.LostSamples(4, false, perfbuild.At{ID: 11})
		}, lost: 5},
		{name: "by the processor's buffer", build: func(f *perfbuild.File) {
			f.Lost(11, 5, at(1))
			f.LostSamples(7, false, at(2))
			f.LostSamples(5, false, perfbuild.At{ID: 11})
		}, lost: 12},
		{name: "throttled, and continued", build: func(f *perfbuild.File) {
			f.Throttle(false, 11, 11, at(1))
			f.Throttle(true, 11, 11, at(2))
			f.Throttle(false, 11, 11, at(3))
		}, throttled: 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := perfbuild.New()
			tc.build(f)
			st := &scan(t, f, ScanOptions{}).Records.Stats
			if st.Lost != tc.lost || st.Throttled != tc.throttled || st.BadRecords != 0 {
				t.Errorf("%d lost, %d throttled, %d bad", st.Lost, st.Throttled, st.BadRecords)
			}
		})
	}
}

// warnings are the texts of the warnings about records, with "partial" and the hint if it has any.
func warnings(sb *State) (list []string) {
	for _, w := range sb.Records.Warnings {
		text := w.Text
		if w.Partial {
			text += " (partial)"
		}
		if w.Hint != "" {
			text += "; hint: " + w.Hint
		}
		list = append(list, text)
	}
	return list
}

// TestRecordWarnings: damage and traces become warnings, and all other records are used.
func TestRecordWarnings(t *testing.T) {
	for _, tc := range []struct {
		name  string
		build func(f *perfbuild.File)
		bad   uint64
		want  []string // parts of the warnings
	}{
		{name: "a COMM that ends in its numbers", build: func(f *perfbuild.File) {
			f.Record(3, 0, make([]byte, 4))
		}, bad: 1, want: []string{"shorter than its sample ID (partial)"}},
		{name: "a FORK that is too short", build: func(f *perfbuild.File) {
			f.Record(7, 0, make([]byte, 8))
		}, bad: 1, want: []string{"(partial)"}},
		{name: "compressed records after a sample", build: func(f *perfbuild.File) {
			f.Sample(perfbuild.Sample{PID: 7, Time: 1})
			f.Record(81, 0, make([]byte, 16))
		}, bad: 1, want: []string{"COMPRESSED record after samples that are not compressed (partial)"}},
		{name: "a trace beside samples", build: func(f *perfbuild.File) {
			f.AuxtraceInfo(1)
			f.Auxtrace(make([]byte, 1500))
			f.Sample(perfbuild.Sample{PID: 7, Time: 1})
		}, want: []string{"2 KiB of Intel PT trace, which is not decoded into samples; hint: run `perf inject"}},
		{name: "a trace alone", build: func(f *perfbuild.File) {
			f.AuxtraceInfo(1)
			f.Auxtrace(make([]byte, 8))
		}, want: []string{"1 KiB of Intel PT trace, which is not decoded into samples (partial)"}},
		{name: "a trace without data, and no samples", build: func(f *perfbuild.File) {
			f.AuxtraceInfo(3)
		}, want: []string{"no samples, and no data of the recorded"}},
		{name: "a trace without data beside samples", build: func(f *perfbuild.File) {
			f.AuxtraceInfo(3)
			f.Sample(perfbuild.Sample{PID: 7, Time: 1})
		}},
		{name: "only the first warnings are kept", build: func(f *perfbuild.File) {
			for range 2 * MaxWarnings {
				f.Record(3, 0, make([]byte, 4))
			}
		}, bad: 2 * MaxWarnings, want: slices.Repeat([]string{"shorter than its sample ID"}, MaxWarnings+1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := perfbuild.New()
			tc.build(f)
			f.Mmap2(exe(7, "/bin/a", 1), at(5))
			sb := scan(t, f, ScanOptions{})
			got := warnings(sb)
			if n := sb.Records.Stats.BadRecords; n != tc.bad || len(got) != len(tc.want) {
				t.Fatalf("%d bad records, warnings %q", n, got)
			}
			for i, want := range tc.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("warning %q, want %q", got[i], want)
				}
			}
			check(t, sb, []look{{7, 5, 0x1010, "/bin/a+0x10"}})
		})
	}
}

// TestCutRecording: the records before the end of a file that is cut off are used.
func TestCutRecording(t *testing.T) {
	f := perfbuild.New()
	f.Mmap2(exe(7, "/bin/a", 1), at(5))
	whole := f.Len()
	f.Mmap2(exe(8, "/bin/b", 2), at(5))
	data := f.Bytes()[:f.DataOffset()+whole+20]
	sb := scanBytes(t, data, ScanOptions{})
	got := warnings(sb)
	if len(got) == 0 || !strings.Contains(got[len(got)-1], "all records before it are used (partial); hint: ") {
		t.Errorf("warnings %q", got)
	}
	check(t, sb, []look{{7, 5, 0x1010, "/bin/a+0x10"}, {8, 5, 0x1010, "-"}})
}

// TestDeferredChain: user chains in records of their own, by cookie and thread.
func TestDeferredChain(t *testing.T) {
	f := perfbuild.New()
	f.DeferredChain(100, []uint64{perfbuild.ContextUser, 0x10}, by(7, 1))
	f.DeferredChain(100, []uint64{perfbuild.ContextUser, 0x20}, by(8, 2))
	f.DeferredChain(200, []uint64{perfbuild.ContextUser, 0x10}, by(7, 3))
	f.DeferredChain(200, []uint64{perfbuild.ContextUser, 0x30}, by(7, 4)) // the first counts
	f.DeferredChain(300, []uint64{perfbuild.ContextUser, 0x40}, perfbuild.At{Time: 5})
	sb := scan(t, f, ScanOptions{})
	if n := len(sb.Records.deferred.chains); n != 4 {
		t.Errorf("%d chains are kept of 5, of which 2 are equal", n)
	}
	for _, tc := range []struct {
		name   string
		tid    int32
		cookie uint64
		want   byte // the low byte of the address; 0 for none
	}{
		{name: "of its thread", tid: 7, cookie: 100, want: 0x10},
		{name: "of another thread with the cookie", tid: 8, cookie: 100, want: 0x20},
		{name: "delivered twice", tid: 7, cookie: 200, want: 0x10},
		{name: "without a thread", tid: 9, cookie: 300, want: 0x40},
		{name: "of no such thread", tid: 9, cookie: 100},
		{name: "not delivered", tid: 7, cookie: 101},
	} {
		chain := sb.Records.DeferredChain(tc.tid, tc.cookie)
		if got := append(bytes.Clone(chain), make([]byte, 16)...)[8]; got != tc.want {
			t.Errorf("%s: chain % x, want %#x", tc.name, chain, tc.want)
		}
	}
}

// TestGuests: samples and records of virtual machines are recognized, and their mappings left out.
func TestGuests(t *testing.T) {
	f := perfbuild.New()
	f.Events[0].SampleType |= perfbuild.IDField
	f.IDIndex([]perfbuild.IDEntry{{ID: 11}, {ID: 12, Machine: 4242}})
	guest := at(5)
	guest.ID = 12
	f.Mmap2(exe(7, "/guest/by-id", 1), guest)
	inGuest := exe(7, "/guest/by-mode", 2)
	inGuest.Misc, inGuest.Addr = perfbuild.GuestUser, 0x3000
	f.Mmap2(inGuest, at(5))
	kernelOf := perfbuild.Mmap{PID: -1, Misc: perfbuild.Kernel, Addr: text, Len: 0x1000, PgOff: text,
		Filename: "[guest.kernel.kallsyms.4242]"}
	f.Mmap2(kernelOf, at(5))
	host := exe(7, "/host", 3)
	host.Addr = 0x5000
	f.Mmap2(host, at(5))
	sb := scan(t, f, ScanOptions{})
	check(t, sb, []look{{7, 9, 0x1010, "-"}, {7, 9, 0x3010, "-"}, {7, 9, 0x5010, "/host+0x10"},
		{-1, 9, text, "-"}})
	if comm, ok := sb.Records.Guest(&perfdata.Sample{ID: 12}); !ok || sb.Threads.CommName(comm) != "guest 4242" {
		t.Errorf("sample of the guest: %v", ok)
	}
	if _, ok := sb.Records.Guest(&perfdata.Sample{ID: 11}); ok {
		t.Error("a sample of the host is of a guest")
	}
}

// TestMetadata: BPF_METADATA records become comments, up to the damage.
func TestMetadata(t *testing.T) {
	f := perfbuild.New()
	f.BPFMetadata("bpf_prog_1", at(1), "version", "3", "author", "x")
	f.Record(84, 0, make([]byte, 100))
	sb := scan(t, f, ScanOptions{})
	if want := []string{"bpf_prog_1: version=3", "bpf_prog_1: author=x"}; !slices.Equal(sb.Records.Comments, want) ||
		sb.Records.Stats.BadRecords != 1 {
		t.Errorf("comments %q, %d bad records", sb.Records.Comments, sb.Records.Stats.BadRecords)
	}
}

// TestCounterReadings: differences of counters, by thread if the counter is inherited.
func TestCounterReadings(t *testing.T) {
	type reading struct {
		tid       int32
		value, id uint64
	}
	for _, tc := range []struct {
		name    string
		inherit bool
		list    []reading
		want    string
	}{
		{name: "from the first reading on", list: []reading{{7, 10, 11}, {7, 15, 11}, {8, 16, 11}},
			want: "0:10 0:5 0:1"},
		{name: "inherited: each thread has its own", inherit: true,
			list: []reading{{7, 10, 11}, {8, 3, 11}, {7, 15, 11}, {8, 4, 11}}, want: "0:10 0:3 0:5 0:1"},
		{name: "lower than before", list: []reading{{7, 10, 11}, {7, 4, 11}},
			want: "0:10 0:18446744073709551610 lower"},
		{name: "of no event", list: []reading{{7, 10, 99}}, want: "-1:0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := perfbuild.New()
			f.Events[0].SampleType |= perfbuild.Read
			f.Events[0].ReadFormat = 1 << 2 // ID
			f.Events = append(f.Events, f.Events[0])
			f.Events[1].IDs = []uint64{21}
			if tc.inherit {
				f.Events[0].Flags |= perfbuild.Inherit
			}
			for i, r := range tc.list {
				f.Sample(perfbuild.Sample{PID: 7, TID: r.tid, Time: uint64(i + 1), Read: []uint64{r.value, r.id}})
			}
			x := &scan(t, f, ScanOptions{}).Records
			counters := x.CountersFrom(x.Chunk(0))
			var s perfdata.Sample
			var got []string
			for r := x.Read(nil, x.Chunk(0)); r.Next(); {
				if err := x.File.DecodeSample(r.Record(), &s); err != nil {
					t.Fatal(err)
				}
				for _, n := range counters.Counts(&s, nil) {
					text := fmt.Sprintf("%d:%d", n.Event, n.Count)
					if n.Lower {
						text += " lower"
					}
					got = append(got, text)
				}
			}
			if text := strings.Join(got, " "); text != tc.want {
				t.Errorf("counts %s, want %s", text, tc.want)
			}
		})
	}
	if f := perfbuild.New(); scan(t, f, ScanOptions{}).Records.CountersFrom(Chunk{}) != nil {
		t.Error("counters without readings")
	}
}
