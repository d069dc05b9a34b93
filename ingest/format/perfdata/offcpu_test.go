package perfdata

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/perfbuild"
)

// TestOffCPU decodes waits as perf record --off-cpu writes them: single ones and sums, with the
// fields in RAW, and the sums of perf 6.1, which have the usual fields.
func TestOffCPU(t *testing.T) {
	const sum = 0xffffffff00000007
	words := []uint64{70<<32 | 71, 5000, 2, perfbuild.ContextUser, 0x401234, 34}
	swapped := append([]uint64{71<<32 | 70}, words[1:]...)
	const fields = perfbuild.Identifier | perfbuild.IP | perfbuild.TID | perfbuild.Time | perfbuild.CPU |
		perfbuild.Period
	for _, tc := range []struct {
		name       string
		event      string
		sampleType uint64
		time       uint64
		raw        []uint64
		want       Sample
		err        string
	}{
		{name: "a wait", sampleType: fields | perfbuild.Raw, time: 9, raw: words, want: Sample{PID: 70, TID: 71,
			Period: 5000, Time: 9, CPU: 3, Chain: le(perfbuild.ContextUser, 0x401234)}},
		{name: "a sum", sampleType: fields | perfbuild.Raw, time: sum, raw: swapped, want: Sample{PID: 70,
			TID: 71, Period: 5000, Time: NoTime, CPU: 3, Chain: le(perfbuild.ContextUser, 0x401234)}},
		{name: "of perf 6.1", sampleType: fields | perfbuild.Callchain, time: sum, want: Sample{PID: 1,
			TID: 2, IP: 0x10, Period: 4, Time: NoTime, CPU: 3, Chain: le(perfbuild.ContextUser, 0x10)}},
		{name: "another event", event: "output", sampleType: fields | perfbuild.Raw, time: sum, raw: words,
			want: Sample{PID: 1, TID: 2, IP: 0x10, Period: 4, Time: sum, CPU: 3}},
		{name: "a long chain", sampleType: fields | perfbuild.Raw, time: 9,
			raw: []uint64{70<<32 | 71, 5000, 1 << 61, perfbuild.ContextUser, 0x401234, 34}, err: "call chain"},
		{name: "cut", sampleType: fields | perfbuild.Raw, time: 9, raw: words[:2], err: "ends before"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bothOrders(t, func(t *testing.T, b *perfbuild.File) {
				b.Events = []perfbuild.Event{{Type: 1, Config: 10, SampleType: tc.sampleType,
					Name: cmp.Or(tc.event, OffCPUEvent), IDs: []uint64{11}}}
				b.EventDesc()
				s := perfbuild.Sample{PID: 1, TID: 2, Time: tc.time, CPU: 3, Period: 4, IP: 0x10,
					Chain: []uint64{perfbuild.ContextUser, 0x10}}
				for _, w := range tc.raw {
					s.Raw = b.Order().AppendUint64(s.Raw, w)
				}
				b.Sample(s)
				f := openBuilt(t, b)
				var got Sample
				err := f.DecodeSample(&records(t, f)[0], &got)
				if tc.err != "" {
					if err == nil || !strings.Contains(err.Error(), tc.err) {
						t.Errorf("error %v", err)
					}
					return
				}
				w := &tc.want
				if err != nil || got.PID != w.PID || got.TID != w.TID || got.Period != w.Period ||
					got.Time != w.Time || got.CPU != w.CPU || got.IP != w.IP || !slices.Equal(got.Chain, w.Chain) ||
					got.Cgroup != map[bool]uint64{true: 34}[w.IP == 0] {
					t.Errorf("%v\ngot  %+v\nwant %+v", err, got, *w)
				}
				if f.Events[0].HasChains() != (len(w.Chain) > 0) {
					t.Errorf("chains: %v", f.Events[0].HasChains())
				}
			})
		})
	}
}
