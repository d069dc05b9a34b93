package record

import (
	"encoding/binary"
	"io"
	"reflect"
	"strings"
	"testing"
)

func TestSpool(t *testing.T) {
	s, err := newSpool()
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for _, x := range []struct {
		id   uint32
		text string
	}{{id: 7, text: "seven"}, {id: 3, text: "three"}, {id: 7, text: "again"}} {
		if err := s.add(x.id, []byte(x.text)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := io.ReadAll(s.section())
	want := string(binary.NativeEndian.AppendUint32(nil, 2)) + "threeseven"
	if err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	if _, ok := s.find(4); ok {
		t.Error("found what is not there")
	}
}

func TestScanKallsyms(t *testing.T) {
	k := &kernel{}
	const list = "ffffffff81000000 T _text\nffffffff82000000 T _etext\n" +
		"ffffffffc0000000 t bpf_trampoline_7\t[bpf]\nffffffffc0001000 t bpf_prog_00_x\t[bpf]\nodd\n"
	_, err := io.Copy(io.Discard, k.symbols(strings.NewReader(list)))
	if err != nil || k.facts.text != 0xffffffff81000000 || k.facts.end != 0xffffffff82000000 ||
		!reflect.DeepEqual(k.list, []kernelImage{{0xffffffffc0000000, "bpf_trampoline_7"}}) {
		t.Errorf("%v: %+v %+v", err, k.facts, k.list)
	}
}
