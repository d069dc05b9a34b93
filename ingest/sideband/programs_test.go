package sideband

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/bpfbuild"
	"symbolize/fixtures/bundlebuild"
	"symbolize/fixtures/perfbuild"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/object/bpf"
)

// programs lists the programs of a State: "ID NAME: functions, why their code is missing".
func programs(sb *State) string {
	var list []string
	for i := range sb.Programs.List {
		p := &sb.Programs.List[i]
		var names []string
		for _, f := range p.Funcs {
			names = append(names, fmt.Sprintf("%s@%x", f.Name, uint64(f.Start)&0xfff))
		}
		list = append(list, fmt.Sprintf("%d %s: %s, %s", p.ID, p.Name, strings.Join(names, " "), p.Missing))
	}
	return strings.Join(list, "; ")
}

// TestGonePrograms: programs that only records name, and why their code is missing.
func TestGonePrograms(t *testing.T) {
	tag := [8]byte(sum(0xa0))
	const main, sub, other = "bpf_prog_a0a0a0a0a0a0a0a0_main", "bpf_prog_a1a1a1a1a1a1a1a1_sub", "bpf_prog_b0b0b0b0b0b0b0b0_x"
	for _, tc := range []struct {
		name    string
		build   func(f *perfbuild.File)
		missing []bundle.MissingProgram
		want    string
	}{
		{name: "loaded, and not recorded", build: func(f *perfbuild.File) {
			f.KSymbol(slot, 64, 1, false, main, by(3, 5))
			f.KSymbol(slot+0x100, 64, 1, false, sub, by(3, 5))
			f.BPFEvent(1, 41, tag, by(3, 5))
		}, want: "41 main: main@0 sub@100, " + bpf.MissingNotRecorded},
		{name: "the event was lost", build: func(f *perfbuild.File) {
			f.KSymbol(slot, 64, 1, false, main, by(3, 5))
			f.KSymbol(slot+0x100, 64, 1, false, sub, by(3, 5))
		}, want: "0 main: main@0, " + bpf.MissingNotRecorded + "; 0 sub: sub@100, " + bpf.MissingNotRecorded},
		{name: "the event of the program before was lost", build: func(f *perfbuild.File) {
			f.KSymbol(slot+0x200, 64, 1, false, other, by(3, 4))
			f.KSymbol(slot, 64, 1, false, main, by(3, 5))
			f.BPFEvent(1, 41, tag, by(3, 5))
		}, want: "0 x: x@200, " + bpf.MissingNotRecorded + "; 41 main: main@0, " + bpf.MissingNotRecorded},
		{name: "two threads load", build: func(f *perfbuild.File) {
			f.KSymbol(slot, 64, 1, false, main, by(3, 5))
			f.KSymbol(slot+0x200, 64, 1, false, other, by(4, 5))
			f.BPFEvent(1, 42, [8]byte(sum(0xb0)), by(4, 6))
			f.BPFEvent(1, 41, tag, by(3, 6))
		}, want: "41 main: main@0, " + bpf.MissingNotRecorded + "; 42 x: x@200, " + bpf.MissingNotRecorded},
		{name: "recorded twice while perf lists the programs", build: func(f *perfbuild.File) {
			for range 2 {
				f.KSymbol(slot, 64, 1, false, main, by(3, 5))
				f.BPFEvent(1, 41, tag, by(3, 5))
			}
		}, want: "41 main: main@0, " + bpf.MissingNotRecorded},
		{name: "an unload is no load", build: func(f *perfbuild.File) {
			f.KSymbol(slot, 64, 1, true, main, by(3, 5))
			f.BPFEvent(2, 41, tag, by(3, 5))
		}},
		{name: "a recorder's reasons", build: func(f *perfbuild.File) {
			f.KSymbol(slot, 64, 1, false, main, by(3, 5))
			f.BPFEvent(1, 41, tag, by(3, 5))
		}, missing: []bundle.MissingProgram{{ID: 41, Reason: "too short-lived"}, {ID: 41, Reason: "later"},
			{ID: 43, Reason: "unloaded", Symbol: other}, {ID: 44, Reason: "unloaded", Symbol: "odd"}, {ID: 0, Reason: "x"}, {ID: 45}},
			want: "41 main: main@0, too short-lived; 43 x: x@0, unloaded; 44 odd: odd@0, unloaded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := perfbuild.New()
			f.Comm(3, 3, "loader", false, at(1))
			tc.build(f)
			if got := programs(scan(t, f, ScanOptions{Missing: tc.missing})); got != tc.want {
				t.Errorf("programs %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestRecordedPrograms: records and the recorded information of programs complete each other.
func TestRecordedPrograms(t *testing.T) {
	h := bundlebuild.NewHost()
	const symbol = "bpf_prog_a0a0a0a0a0a0a0a0_on_sys_enter_long"
	for _, tc := range []struct {
		name  string
		alter func(p *bpfbuild.Program)
		event bool // the BPF_EVENT was recorded
		want  string
	}{
		{name: "whole", event: true, want: "on_sys_enter@10 count_call@20, "},
		{name: "by address, without the event", want: "on_sys_enter@10 count_call@20, "},
		{name: "addresses are hidden", event: true, alter: func(p *bpfbuild.Program) { p.Hide = bpfbuild.JITedKSyms },
			want: "on_sys_enter@10 count_call@20, "},
		{name: "addresses are hidden, and the event is lost",
			alter: func(p *bpfbuild.Program) { p.Hide = bpfbuild.JITedKSyms },
			want:  "on_sys_enter@0 count_call@0, "},
		{name: "lengths are hidden", event: true, alter: func(p *bpfbuild.Program) { p.Hide = bpfbuild.JITedFuncLens },
			want: "on_sys_enter@10 count_call@20, " + bpf.MissingHidden},
		{name: "names without BTF are the records'", event: true, alter: func(p *bpfbuild.Program) { p.BTFID = 0 },
			want: "on_sys_enter_long@10 count_call@20, "},
		{name: "another length is another function", event: true, alter: func(p *bpfbuild.Program) {
			p.Funcs = slices.Clone(p.Funcs)
			p.Funcs[0].Code = make([]byte, 32)
		}, want: "on_sys_enter@10 count_call@20, "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := h.A
			if tc.alter != nil {
				tc.alter(&p)
			}
			f := perfbuild.New()
			info, btf := bpfbuild.Sections(false, p)
			f.Feature(perfbuild.FeatureBPFProgInfo, info)
			f.Feature(perfbuild.FeatureBPFBTF, btf)
			f.KSymbol(bundlebuild.SlotA, 64, 1, false, symbol, by(3, 5))
			f.KSymbol(bundlebuild.SlotSub, 48, 1, false, bundlebuild.Symbol(&p, 1), by(3, 5))
			if tc.event {
				f.BPFEvent(1, p.ID, p.Tag, by(3, 5))
			}
			sb := scan(t, f, ScanOptions{})
			i := slices.IndexFunc(sb.Programs.List, func(x bpf.Program) bool { return x.ID == p.ID })
			if i < 0 {
				t.Fatalf("programs %s", programs(sb))
			}
			sb.Programs.List = sb.Programs.List[i : i+1]
			if got, want := programs(sb), "41 on_sys_enter: "+tc.want; got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
		})
	}
}

// TestDamagedPrograms: damage of the features is a warning, and the records' names stay.
func TestDamagedPrograms(t *testing.T) {
	h := bundlebuild.NewHost()
	info, btf := bpfbuild.Sections(false, h.A)
	for _, tc := range []struct {
		name      string
		info, btf []byte
		want      int // programs with recorded information
		warnings  int
	}{
		{name: "whole", info: info, btf: btf, want: 1},
		{name: "programs are cut off", info: info[:len(info)-8], btf: btf, warnings: 1},
		{name: "types are cut off", info: info, btf: btf[:len(btf)-8], want: 1, warnings: 1},
	} {
		f := perfbuild.New()
		f.Feature(perfbuild.FeatureBPFProgInfo, tc.info)
		f.Feature(perfbuild.FeatureBPFBTF, tc.btf)
		f.KSymbol(bundlebuild.SlotA, 64, 1, false, bundlebuild.Symbol(&h.A, 0), by(3, 5))
		f.BPFEvent(1, h.A.ID, h.A.Tag, by(3, 5))
		sb := scan(t, f, ScanOptions{})
		n := 0
		for _, p := range sb.Programs.List {
			if p.Raw != nil {
				n++
			}
		}
		if n != tc.want || len(sb.Records.Warnings) != tc.warnings || (sb.Programs.Err != nil) != (tc.warnings > 0) {
			t.Errorf("%s: %d programs, warnings %q, %v", tc.name, n, warnings(sb), sb.Programs.Err)
		}
		if types := Types("built", sb.Records.File); len(types) != 1-tc.warnings*tc.want {
			t.Errorf("%s: %d sets of types", tc.name, len(types))
		}
		check(t, sb, []look{{-1, 6, bundlebuild.SlotA + 4, bundlebuild.Symbol(&h.A, 0) + "+0x4"}})
	}
	if Types("built", scan(t, perfbuild.New(), ScanOptions{}).Records.File) != nil {
		t.Error("types of a recording without the feature")
	}
}
