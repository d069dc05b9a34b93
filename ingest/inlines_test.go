package ingest

import (
	"reflect"
	"testing"
)

func TestWithoutInlines(t *testing.T) {
	plain := &Names{FrameEnds: []uint32{1, 1}, Frames: []Frame{{Func: 3}}}
	if plain.WithoutInlines() != plain {
		t.Error("names without inlined frames were copied")
	}
	n := &Names{
		Functions: []Function{{SystemName: "a"}, {SystemName: "b"}, {SystemName: "c"}},
		FrameEnds: []uint32{2, 2, 3, 6},
		Frames: []Frame{
			{Func: 0, Line: 7, Inlined: true}, {Func: 1, Line: 9},
			{Func: 2},
			{Func: 1, Inlined: true}, {Func: 0, Inlined: true}, {Func: 2, Line: 4},
		},
		Reasons: []Reason{0, Stripped, 0, 0},
		SymOff:  []uint64{1, 0, 2, 3},
	}
	got := n.WithoutInlines()
	want := &Names{
		Functions: n.Functions,
		FrameEnds: []uint32{1, 1, 2, 3},
		Frames:    []Frame{{Func: 1, Line: 9}, {Func: 2}, {Func: 2, Line: 4}},
		Reasons:   n.Reasons,
		SymOff:    n.SymOff,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if len(n.Frames) != 6 {
		t.Error("the names themselves were changed")
	}
}
