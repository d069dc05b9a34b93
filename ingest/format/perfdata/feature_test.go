package perfdata

import (
	"encoding/binary"
	"math/bits"
	"reflect"
	"slices"
	"strings"
	"testing"

	"symbolize/buildid"
	"symbolize/fixtures/perfbuild"
)

// everyFeature sets all features that are decoded, and some others.
func everyFeature(b *perfbuild.File) {
	b.FeatureString(perfbuild.FeatureHostname, "host")
	b.FeatureString(perfbuild.FeatureOSRelease, "6.18.15")
	b.FeatureString(perfbuild.FeatureVersion, "6.1.192")
	b.FeatureString(perfbuild.FeatureArch, "x86_64")
	b.FeatureString(perfbuild.FeatureCPUDesc, "A CPU")
	b.FeatureString(perfbuild.FeatureCPUID, "Vendor,6,1")
	b.NrCPUs(4, 2)
	b.CmdLine("/usr/bin/perf", "record", "-g", strings.Repeat("long ", 40))
	b.EventDesc()
	b.PMUMappings(perfbuild.PMU{Type: 4, Name: "cpu"}, perfbuild.PMU{Type: 9, Name: "msr"})
	b.Words64(perfbuild.FeatureTotalMem, 16<<20)
	b.Words64(perfbuild.FeatureSampleTime, 1000, 2000)
	b.Words64(perfbuild.FeatureClockID, 1)
	b.Words64(perfbuild.FeatureDirFormat, 0)
	b.ClockData(4, 1_700_000_000_000_000_000, 123456)
	b.Compressed(1, 3, 1<<20)
	b.Feature(perfbuild.FeatureBranchStack, []byte{})
	b.BuildIDs(
		perfbuild.BuildIDEntry{Misc: perfbuild.Kernel, ID: id20, Filename: "[kernel.kallsyms]"},
		perfbuild.BuildIDEntry{Misc: perfbuild.User, ID: id20[:8], Filename: "/bin/go", Align: 8},
		perfbuild.BuildIDEntry{Misc: perfbuild.User, ID: id20[:16], NoSize: true,
			Filename: "/bin/md5"},
		perfbuild.BuildIDEntry{PID: 77, Misc: perfbuild.GuestKernel, ID: id20, Filename: "[guest]"})
	b.Feature(perfbuild.FeatureBPFProgInfo, []byte{0, 0, 0, 0})
	b.Feature(200, []byte("nobody knows"))
}

func TestFeatures(t *testing.T) {
	bothOrders(t, func(t *testing.T, b *perfbuild.File) {
		b.Events[0].Flags |= perfbuild.Precise2
		everyFeature(b)
		b.FinishedRound()
		f := openBuilt(t, b)
		got := f.Features
		sections := got.Sections
		got.Present, got.Sections = [4]uint64{}, nil
		want := Features{
			Unknown: []Feature{200},
			BuildIDs: []BuildIDEntry{
				{ID: buildid.New(id20), PID: -1, CPUMode: CPUModeKernel,
					Filename: "[kernel.kallsyms]"},
				{ID: buildid.New(id20[:8]), PID: -1, CPUMode: CPUModeUser, Filename: "/bin/go"},
				{ID: buildid.Padded(id20[:16]), PID: -1, CPUMode: CPUModeUser,
					Filename: "/bin/md5"},
				{ID: buildid.New(id20), PID: 77, CPUMode: CPUModeGuestKernel, Filename: "[guest]"},
			},
			Hostname: "host", OSRelease: "6.18.15", Version: "6.1.192", Arch: "x86_64",
			CPUDesc: "A CPU", CPUsAvailable: 4, CPUsOnline: 2,
			CmdLine: []string{"/usr/bin/perf", "record", "-g", strings.Repeat("long ", 40)},
			EventDesc: []EventDesc{{Attr: f.Events[0].Attr, Name: "cpu-clock",
				IDs: []uint64{11, 12}}},
			PMUMappings: []PMU{{4, "cpu"}, {9, "msr"}},
			FirstTime:   1000, LastTime: 2000,
			ClockData: &ClockData{ClockID: 4, WallNanos: 1_700_000_000_000_000_000,
				ClockNanos: 123456},
			Compressed: true,
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		if sec, ok := f.Features.Section(FeatureBPFProgInfo); !ok || sec.Size != 4 ||
			len(sections) != 20 {
			t.Errorf("%d sections, BPF_PROG_INFO at %+v", len(sections), sec)
		}
		if b, err := f.FeatureBytes(200, 100); err != nil || string(b) != "nobody knows" {
			t.Errorf("feature 200: %q, %v", b, err)
		}
		if _, err := f.FeatureBytes(200, 5); err == nil {
			t.Error("feature 200 is over the limit, and given")
		}
		if _, err := f.FeatureBytes(FeatureTracingData, 5); err == nil {
			t.Error("TRACING_DATA is not there, and given")
		}
		if !f.Features.Has(200) || f.Features.Has(FeatureTracingData) {
			t.Errorf("bitmap %x", f.Features.Present)
		}
	})
}

// TestBuildIDOldEntries reads entries of before 2010, which have no pid.
func TestBuildIDOldEntries(t *testing.T) {
	b := perfbuild.New()
	var old []byte
	for _, name := range []string{"[kernel.kallsyms]", "/lib/libc.so"} {
		e := make([]byte, 8+24+32)
		binary.LittleEndian.PutUint16(e[4:], perfbuild.Kernel)
		binary.LittleEndian.PutUint16(e[6:], uint16(len(e)))
		copy(e[8:], id20)
		copy(e[32:], name)
		old = append(old, e...)
	}
	b.Feature(perfbuild.FeatureBuildID, old)
	b.FinishedRound()
	f := openBuilt(t, b)
	want := []BuildIDEntry{
		{ID: buildid.Padded(id20), PID: -1, CPUMode: CPUModeKernel, Filename: "[kernel.kallsyms]"},
		{ID: buildid.Padded(id20), PID: -1, CPUMode: CPUModeKernel, Filename: "/lib/libc.so"},
	}
	if !slices.Equal(f.Features.BuildIDs, want) {
		t.Errorf("got %+v", f.Features.BuildIDs)
	}
}

// TestBuildIDZeros reads the entries that perf 6.12.0 wrote, with 36 zeros after each, in both byte
// orders.
func TestBuildIDZeros(t *testing.T) {
	for _, tc := range []struct {
		big         bool
		misc        uint16
		zeros, last int
	}{{misc: perfbuild.User, zeros: 36, last: 36}, {big: true, misc: perfbuild.User, zeros: 36, last: 36},
		{misc: perfbuild.User, last: 36}, {misc: perfbuild.User, zeros: 36}, {misc: perfbuild.User}} {
		b := perfbuild.New()
		b.BigEndian = tc.big
		var entries []perfbuild.BuildIDEntry
		var want []BuildIDEntry
		for i, name := range []string{"/bin/a", "/lib/libb.so", "/lib/c"} {
			e := perfbuild.BuildIDEntry{Misc: tc.misc, ID: id20, Filename: name, Zeros: tc.zeros, NoSize: i == 1}
			if i == 2 {
				e.Zeros = tc.last
			}
			entries = append(entries, e)
			want = append(want, BuildIDEntry{ID: buildid.New(id20), PID: -1, CPUMode: CPUModeUser, Filename: name})
		}
		want[1].ID = buildid.Padded(id20)
		b.BuildIDs(entries...)
		b.FinishedRound()
		f := openBuilt(t, b)
		if !slices.Equal(f.Features.BuildIDs, want) || len(f.Warnings) > 0 {
			t.Errorf("%+v: got %+v, %v", tc, f.Features.BuildIDs, f.Warnings)
		}
		if got := f.Features.PaddedIDs; got != (tc.zeros+tc.last > 0) {
			t.Errorf("%+v: padded %t", tc, got)
		}
	}
}

// TestFeatureDamage has sections with wrong content: a warning each, and the rest kept.
func TestFeatureDamage(t *testing.T) {
	absurd := []byte{0xff, 0xff, 0xff, 0xff, 'x', 0, 0, 0}
	short := []byte{1}
	for _, tt := range []struct {
		feature int
		payload []byte
	}{
		{feature: perfbuild.FeatureOSRelease, payload: absurd}, {feature: perfbuild.FeatureVersion,
			payload: short},
		{feature: perfbuild.FeatureCmdLine, payload: absurd}, {feature: perfbuild.FeatureEventDesc,
			payload: absurd},
		{feature: perfbuild.FeatureEventDesc, payload: short}, {feature: perfbuild.FeaturePMUMappings,
			payload: absurd},
		{feature: perfbuild.FeatureBuildID, payload: absurd}, {feature: perfbuild.FeatureBuildID,
			payload: make([]byte, 36)},
		{feature: perfbuild.FeatureSampleTime, payload: short}, {feature: perfbuild.FeatureClockData,
			payload: absurd},
		{feature: perfbuild.FeatureNrCPUs, payload: short}, {feature: perfbuild.FeatureCompressed,
			payload: short},
	} {
		b := small()
		b.Feature(tt.feature, tt.payload)
		f := openBytes(t, b.Bytes())
		name := Feature(tt.feature).String()
		if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].Error(), name) {
			t.Errorf("feature %d: warnings %v", tt.feature, f.Warnings)
		}
		if f.Features.Hostname != "host" || len(records(t, f)) != 2 {
			t.Errorf("feature %d: the rest is lost", tt.feature)
		}
	}
}

// TestEmptyFeature: perf on some machines writes a CPUDESC without a byte.
func TestEmptyFeature(t *testing.T) {
	b := small()
	b.Feature(perfbuild.FeatureCPUDesc, []byte{})
	if f := openBuilt(t, b); !f.Features.Has(FeatureCPUDesc) || f.Features.Hostname != "host" {
		t.Errorf("features %+v", f.Features)
	}
}

// TestFeatureOutsideFile has a section outside the file.
func TestFeatureOutsideFile(t *testing.T) {
	b := small()
	b.FeatureString(perfbuild.FeatureArch, "x86_64")
	data := b.Bytes()
	table := int(openBytes(t, data).Data.End())
	for _, at := range []int{table, table + 8} {
		f := openBytes(t, patch(data, at, ^uint64(0)-9))
		if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].Error(), "HOSTNAME feature") {
			t.Errorf("warnings %v", f.Warnings)
		}
		if _, ok := f.Features.Section(FeatureHostname); ok || f.Features.Arch != "x86_64" {
			t.Errorf("features %+v", f.Features)
		}
	}
}

// TestZeroTable has zeros in the place of the table of features, of one feature or of all.
func TestZeroTable(t *testing.T) {
	b := small()
	b.FeatureString(perfbuild.FeatureArch, "x86_64")
	data := b.Bytes()
	table := int(openBytes(t, data).Data.End())
	one := patch(patch(data, table, uint64(0)), table+8, uint64(0))
	all := append(slices.Clone(data[:table]), make([]byte, len(data)-table)...)
	for want, zeroed := range map[string][]byte{"1 of 2 features are lost": one, "2 of 2 features are lost": all} {
		f := openBytes(t, zeroed)
		if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].Error(), want) || len(records(t, f)) != 2 {
			t.Errorf("%s: warnings %v", want, f.Warnings)
		}
	}
}

// TestBitmapOf32Bits has the bitmap as a big-endian recorder of 32 bits writes it: as an array of
// 32-bit words.
func TestBitmapOf32Bits(t *testing.T) {
	b := perfbuild.NewOrder(true)
	b.FeatureString(perfbuild.FeatureHostname, "sparc")
	b.Feature(40, []byte("x"))
	b.FinishedRound()
	data := b.Bytes()
	w := binary.BigEndian.Uint64(data[bitmapOffset:])
	binary.BigEndian.PutUint64(data[bitmapOffset:], bits.RotateLeft64(w, 32))
	f := openBytes(t, data)
	if len(f.Warnings) > 0 || f.Features.Hostname != "sparc" || !f.Features.Has(40) {
		t.Errorf("%v, %+v", f.Warnings, f.Features)
	}
}

func TestNames(t *testing.T) {
	for _, tt := range []struct {
		got  interface{ String() string }
		want string
	}{
		{got: TypeMmap2, want: "MMAP2"}, {got: TypeBPFEvent, want: "BPF_EVENT"}, {got: TypeBPFMetadata,
			want: "BPF_METADATA"},
		{got: Type(0), want: "UNKNOWN_0"}, {got: Type(40), want: "UNKNOWN_40"}, {got: Type(1 << 31),
			want: "UNKNOWN_2147483648"},
		{got: FeatureBuildID, want: "BUILD_ID"}, {got: FeaturePMUCaps, want: "PMU_CAPS"},
		{got: Feature(0), want: "FEATURE_0"}, {got: Feature(255), want: "FEATURE_255"},
	} {
		if tt.got.String() != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
	if !TypeCompressed.Compressed() || !TypeCompressed2.Compressed() || TypeSample.Compressed() {
		t.Error("Compressed")
	}
}
