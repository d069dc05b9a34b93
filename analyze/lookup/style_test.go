package lookup

import (
	"encoding/json"
	"testing"
)

func TestLayouts(t *testing.T) {
	inlined := Answer{Valid: true, Address: 0xb76, Module: `dir/"x"`, Frames: []Frame{
		{Function: "leaf", File: "/src/leaf.h", Line: 2, Column: 9, StartFile: "/src/leaf.h",
			StartLine: 1},
		{Function: "work\té", File: "/src/work.cc", Line: 12, StartAddress: 0xb00, HasStart: true},
	}}
	symbol := Answer{Valid: true, Address: 1, Module: "m",
		Frames: []Frame{{Function: "_start"}}}
	lines := Answer{Valid: true, Address: 2, Module: "m",
		Frames: []Frame{{File: "a.S", Line: 3}}}
	nothing := Answer{Valid: true, Address: 0xffffffffffffffff, Module: "m"}
	rubbish := Answer{Input: `zz "top"`, Module: "m"}
	for _, tt := range []struct {
		name   string
		answer *Answer
		style  Layout
		llvm   string
		gnu    string
	}{
		{"inlined", &inlined, Layout{},
			"leaf\n/src/leaf.h:2:9\nwork\té\n/src/work.cc:12:0\n\n",
			"leaf\n/src/leaf.h:2\nwork\té\n/src/work.cc:12\n"},
		{"inlined, addresses", &inlined, Layout{Addresses: true},
			"0xb76\nleaf\n/src/leaf.h:2:9\nwork\té\n/src/work.cc:12:0\n\n",
			"0x0000000000000b76\nleaf\n/src/leaf.h:2\nwork\té\n/src/work.cc:12\n"},
		{"inlined, pretty", &inlined, Layout{Addresses: true, Pretty: true},
			"0xb76: leaf at /src/leaf.h:2:9\n (inlined by) work\té at /src/work.cc:12:0\n\n",
			"0x0000000000000b76: leaf at /src/leaf.h:2\n (inlined by) work\té at /src/work.cc:12\n"},
		{"inlined, no names", &inlined, Layout{Nameless: true},
			"/src/leaf.h:2:9\n/src/work.cc:12:0\n\n", "/src/leaf.h:2\n/src/work.cc:12\n"},
		{"inlined, no names, pretty", &inlined, Layout{Nameless: true, Pretty: true},
			"/src/leaf.h:2:9\n/src/work.cc:12:0\n\n",
			"/src/leaf.h:2\n (inlined by) /src/work.cc:12\n"},
		{"nothing, no names", &nothing, Layout{Nameless: true}, "??:0:0\n\n", "??:0\n"},
		{"symbol", &symbol, Layout{}, "_start\n??:0:0\n\n", "_start\n??:?\n"},
		{"lines", &lines, Layout{}, "??\na.S:3:0\n\n", "??\na.S:3\n"},
		{"nothing", &nothing, Layout{}, "??\n??:0:0\n\n", "??\n??:0\n"},
		{"nothing, pretty", &nothing, Layout{Addresses: true, Pretty: true},
			"0xffffffffffffffff: ?? at ??:0:0\n\n", "0xffffffffffffffff: ?? ??:0\n"},
		{"rubbish", &rubbish, Layout{}, "zz \"top\"\n", "??\n??:0\n"},
	} {
		if got := string(tt.style.AppendLLVM(nil, tt.answer)); got != tt.llvm {
			t.Errorf("%s: llvm %q, want %q", tt.name, got, tt.llvm)
		}
		if got := string(tt.style.AppendGNU(nil, tt.answer)); got != tt.gnu {
			t.Errorf("%s: gnu %q, want %q", tt.name, got, tt.gnu)
		}
	}
}

// TestAnswerJSON: the answers as read by a JSON decoder, and the very bytes of
// llvm-symbolizer where it knows as much.
func TestAnswerJSON(t *testing.T) {
	var s Layout
	for _, tt := range []struct {
		answer Answer
		want   string
	}{
		{Answer{Valid: true, Address: 0xc20, Module: "mixed.debug", Frames: []Frame{{
			Function: "work_in_kernel", File: "/srv/app/src/mixed.c", Line: 50, Column: 11,
			StartLine: 48, StartAddress: 0xc12, HasStart: true}}},
			`{"Address":"0xc20","ModuleName":"mixed.debug","Symbol":[{"Column":11,` +
				`"Discriminator":0,"FileName":"/srv/app/src/mixed.c","FunctionName":"work_in_kernel",` +
				`"Line":50,"StartAddress":"0xc12","StartFileName":"","StartLine":48}]}`},
		{Answer{Valid: true, Module: "m"},
			`{"Address":"0x0","ModuleName":"m","Symbol":[{"Column":0,"Discriminator":0,` +
				`"FileName":"","FunctionName":"","Line":0,"StartAddress":"","StartFileName":"",` +
				`"StartLine":0}]}`},
		{Answer{Input: "foo", Module: "m"},
			`{"Error":{"Message":"unable to parse arguments: foo"},"ModuleName":"m"}`},
	} {
		if got := string(s.AppendJSON(nil, &tt.answer)); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
	hostile := Answer{Valid: true, Module: "a\"b\\c\x01é\xff",
		Frames: []Frame{{Function: "f"}, {Function: "g\n"}}}
	var back struct {
		ModuleName string
		Symbol     []struct{ FunctionName string }
	}
	if err := json.Unmarshal(s.AppendJSON(nil, &hostile), &back); err != nil {
		t.Fatal(err)
	}
	if back.ModuleName != "a\"b\\c\x01é\ufffd" || len(back.Symbol) != 2 ||
		back.Symbol[1].FunctionName != "g\n" {
		t.Errorf("%+v", back)
	}
}
