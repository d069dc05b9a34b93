package input

import (
	"strings"
	"testing"

	"symbolize/fixtures/perfbuild"
)

// TestTraces reports traces, which are no samples: a recording of nothing else is not read.
func TestTraces(t *testing.T) {
	for _, tt := range []struct {
		name    string
		samples int
		kind    uint32
		big     bool
		want    string
	}{
		{name: "nothing else", samples: 0, kind: 1, want: "5 KiB of Intel PT trace"},
		{name: "beside samples", samples: 3, kind: 3, big: true,
			want: "5 KiB of ARM CoreSight ETM trace"},
		{name: "a new type", samples: 0, kind: 99, big: true, want: "5 KiB of type 99 trace"},
	} {
		b := perfbuild.NewOrder(tt.big)
		b.AuxtraceInfo(tt.kind)
		b.Auxtrace(make([]byte, 3000))
		for i := range tt.samples {
			b.Sample(perfbuild.Sample{PID: 1, TID: 1, Time: uint64(i), IP: 0x400000})
		}
		b.Auxtrace(make([]byte, 1200))
		c, err := openBytes(t, b.Bytes(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := c.Profile(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w := p.Stats.Warnings
		if len(w) != 1 || !strings.Contains(w[0].Text, tt.want) ||
			w[0].Partial != (tt.samples == 0) || !strings.Contains(w[0].Hint, "perf inject --itrace") {
			t.Errorf("%s: %+v", tt.name, w)
		}
		if p.Stats.Samples != uint64(tt.samples) {
			t.Errorf("%s: %d samples", tt.name, p.Stats.Samples)
		}
	}
}

// TestTracesLost: a recording with neither samples nor anything of its trace is not read.
func TestTracesLost(t *testing.T) {
	for _, samples := range []int{0, 1} {
		b := perfbuild.New()
		b.AuxtraceInfo(3)
		for range samples {
			b.Sample(perfbuild.Sample{PID: 1, TID: 1, Time: 1, IP: 0x400000})
		}
		p := fold(t, b.Bytes(), Options{})
		w := p.Stats.Warnings
		switch {
		case samples > 0 && len(w) == 0:
		case samples == 0 && len(w) == 1 && w[0].Partial && w[0].Hint != "" &&
			strings.Contains(w[0].Text, "no samples, and no data of the recorded ARM CoreSight ETM trace"):
		default:
			t.Errorf("%d samples: %+v", samples, w)
		}
	}
}
