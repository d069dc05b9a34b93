package pgo

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"symbolize/analyze/code"
	"symbolize/ingest"
	"symbolize/ingest/object/elf"
	"symbolize/store"
)

// branchesFile is a program with symbols and debug information.
const branchesFile = "../../fixtures/branches/branches"

// Places of programProfile.
const (
	inStep   = iota // first instruction of a function
	between         // in code of no function
	outside         // in no segment
	stranger        // in another file
)

// programProfile has samples of the program.
func programProfile(t *testing.T, rows ...row) (*ingest.Profile, store.View) {
	t.Helper()
	data, err := os.ReadFile(branchesFile)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(branchesFile, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	p, _ := testProfile(t, rows...)
	p.Objects = []ingest.Object{{Kind: ingest.ELF, ID: f.ID, File: ingest.FileRef{Path: "/bin/branches"}},
		{Kind: ingest.ELF, ID: idC, File: ingest.FileRef{Path: "/bin/c"}}}
	p.Locations = []ingest.Location{inStep: {Offset: 0x1060}, between: {Offset: 0x1008}, outside: {Offset: 0x900000},
		stranger: {Object: 1, Offset: 0x50}}
	v := store.NewOverlay()
	m := store.Manifest{ID: f.ID, Kind: ingest.ELF, Type: uint16(f.Type), Layout: f.Segments}
	if err := v.Merge(t.Context(), &store.Contribution{Manifest: m}); err != nil {
		t.Fatal(err)
	}
	return p, v
}

// TestLeftOut: in every format samples without an address, a symbol or a line are left out, counted and said,
// and so are counts with a sum that does not fit.
func TestLeftOut(t *testing.T) {
	sample := func(n uint64, l ingest.LocationID) row { return row{count: n, stack: []ingest.LocationID{l}} }
	rows := []row{sample(3, inStep), sample(4, between), sample(5, outside), sample(6, stranger)}
	const (
		noAddress = "5 samples left out: offsets without an address: outside the object"
		noLine    = "4 samples left out: the debug information has no line for them"
		noSymbol  = "4 samples left out: no symbol of a function has them"
		overflow  = "1 samples left out: the sum of all would not fit"
	)
	for _, tt := range []struct {
		format   string
		warnings []string
		written  string // of the sample in the function
	}{
		{FormatPreagg, []string{noAddress}, "S 401060 3\n"},
		{FormatFdata, []string{noAddress, noSymbol}, "1 step/1 0 3\n"},
		{FormatLLVM, []string{noAddress, noLine}, "step:3:3\n"},
		{FormatGCOV, []string{noAddress, noLine}, "step"},
	} {
		for _, more := range []row{{}, sample(1<<64-1, inStep)} {
			p, v := programProfile(t, slices.Concat(rows, []row{more})...)
			counts := New(p, v, 0)
			e := Encoder{Format: tt.format, Code: code.Options{View: v, Paths: []string{branchesFile}}}
			var b bytes.Buffer
			stats, err := e.Write(t.Context(), &b, counts, 0)
			want := tt.warnings
			if more.count > 0 {
				want = append(slices.Clone(want), overflow)
			}
			var got []string
			for _, w := range counts.Warnings(0, &stats) {
				got = append(got, w.Text)
			}
			if err != nil || !slices.Equal(got, want) || stats.Others != 6 || !strings.Contains(b.String(), tt.written) {
				t.Errorf("%s: %v, %d others, %q of\n%s\nwant %q", tt.format, err, stats.Others, got, &b, want)
			}
		}
		for _, only := range []row{sample(5, outside), {branch(ingest.BranchTaken, false), 5, []ingest.LocationID{stranger, outside}}} {
			p, v := programProfile(t, only)
			e := Encoder{Format: tt.format, Code: code.Options{View: v, Paths: []string{branchesFile}}}
			var b bytes.Buffer
			if _, err := e.Write(t.Context(), &b, New(p, v, 0), 0); !errors.Is(err, ErrNoCounts) || b.Len() > 0 ||
				!strings.HasSuffix(err.Error(), noAddress) {
				t.Errorf("%s without an address: %v\n%s", tt.format, err, &b)
			}
		}
	}
}
