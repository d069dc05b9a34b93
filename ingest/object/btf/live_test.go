package btf

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	cilium "github.com/cilium/ebpf/btf"

	"symbolize/fixtures/must"
)

const kernelTypes = "/sys/kernel/btf/vmlinux"

// live returns the kernel's types, and skips where it may not.
func live(t testing.TB) []byte {
	t.Helper()
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SKIPPED: SYMBOLIZE_LIVE is not set; nothing was compared with the running kernel")
	}
	raw := must.Read(t, kernelTypes)
	return raw
}

// TestLiveKernelTypes compares all types of the running kernel with cilium/ebpf's.
func TestLiveKernelTypes(t *testing.T) {
	types, err := Parse(kernelTypes, live(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, types)
	walk(t, types)
	t.Logf("%d types", types.Len())
}

// TestLiveBpftool compares all types of the running kernel with bpftool's.
func TestLiveBpftool(t *testing.T) {
	types, err := Parse(kernelTypes, live(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("bpftool", "-j", "btf", "dump", "file", kernelTypes).Output()
	if err != nil {
		t.Fatal(err)
	}
	var dump struct{ Types []dumpedType }
	if err := json.Unmarshal(out, &dump); err != nil {
		t.Fatal(err)
	}
	if len(dump.Types)+1 != types.Len() {
		t.Errorf("%d types, bpftool's %d", types.Len()-1, len(dump.Types))
	}
	for _, d := range dump.Types {
		d.compare(t, types)
		if t.Failed() {
			return
		}
	}
}

// dumpedType is a type in bpftool's JSON.
type dumpedType struct {
	ID         ID
	Kind, Name string
	Size       *uint64
	TypeID     *ID `json:"type_id"`
	RetTypeID  *ID `json:"ret_type_id"`
	Vlen       int
	BitsOffset *uint8  `json:"bits_offset"`
	NrBits     *uint8  `json:"nr_bits"`
	NrElems    *uint32 `json:"nr_elems"`
	Members    []struct {
		Name         string
		TypeID       ID     `json:"type_id"`
		BitsOffset   uint32 `json:"bits_offset"`
		BitfieldSize uint8  `json:"bitfield_size"`
	}
}

func (d *dumpedType) compare(t *testing.T, types *Types) {
	t.Helper()
	name := d.Name
	if name == "(anon)" {
		name = ""
	}
	if types.Kind(d.ID).String() != d.Kind || types.Name(d.ID) != name {
		t.Errorf("type %d is %s %q, bpftool's %s %q", d.ID, types.Kind(d.ID),
			types.Name(d.ID), d.Kind, d.Name)
	}
	if d.Size != nil {
		if n, err := types.Size(d.ID); n != *d.Size || err != nil {
			t.Errorf("type %d has %d bytes, error %v, bpftool's %d", d.ID, n, err, *d.Size)
		}
	}
	for _, want := range []*ID{d.TypeID, d.RetTypeID} {
		got := types.Ref(d.ID)
		if d.NrElems != nil {
			got = types.Array(d.ID).Elem
		}
		if want != nil && got != *want {
			t.Errorf("type %d refers to %d, bpftool's to %d", d.ID, got, *want)
		}
	}
	v := types.Int(d.ID)
	if d.NrBits != nil && (v.Bits != *d.NrBits || v.Offset != *d.BitsOffset) ||
		d.NrElems != nil && types.Array(d.ID).Len != *d.NrElems {
		t.Errorf("type %d: %+v, %+v, bpftool's %+v", d.ID, v, types.Array(d.ID), d)
	}
	if types.MemberCount(d.ID) != len(d.Members) {
		t.Errorf("type %d has %d members, bpftool's %d", d.ID, types.MemberCount(d.ID),
			len(d.Members))
		return
	}
	for i, m := range types.Members(d.ID) {
		w := d.Members[i]
		if w.Name == "(anon)" {
			w.Name = ""
		}
		if m.Name != w.Name || m.Type != w.TypeID || m.BitOffset != w.BitsOffset ||
			m.BitSize != w.BitfieldSize {
			t.Errorf("type %d: member %+v, bpftool's %+v", d.ID, m, w)
		}
	}
}

// BenchmarkLiveParse and BenchmarkLiveCilium read the kernel's types.
func BenchmarkLiveParse(b *testing.B) {
	raw := live(b)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(kernelTypes, raw, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLiveCilium is the reference for BenchmarkLiveParse.
func BenchmarkLiveCilium(b *testing.B) {
	raw := live(b)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := cilium.LoadSpecFromReader(bytes.NewReader(raw)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParse reads the types of an object.
func BenchmarkParse(b *testing.B) {
	raw := kinds(b).Raw()
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("kinds", raw, nil); err != nil {
			b.Fatal(err)
		}
	}
}
