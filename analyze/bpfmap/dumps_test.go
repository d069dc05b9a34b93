package bpfmap

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/ingest/format/mapdump"
	"symbolize/ingest/object/btf"
)

// remarks records the calls of a Log.
type remarks struct{ notes, warnings, damages []string }

func (r *remarks) Note(text string)      { r.notes = append(r.notes, text) }
func (r *remarks) Warn(text, _ string)   { r.warnings = append(r.warnings, text) }
func (r *remarks) Damage(text, _ string) { r.damages = append(r.damages, text) }

// TestOpen selects the dumps of one map, or fails with the reason.
func TestOpen(t *testing.T) {
	const maps, drops = "../../fixtures/maps/", "../../fixtures/drops/"
	text := filepath.Join(t.TempDir(), "text")
	must.Write(t, text, []byte("none\n"))
	for _, c := range []struct {
		name   string
		paths  []string
		source Source
		dumps  int
		value  string // type of the values; "" for bytes
		err    error
		errHas string
	}{
		{name: "without types", paths: []string{maps + "bare.json"}, dumps: 1},
		{name: "by its definition", paths: []string{maps + "ints.json"},
			source: Source{Map: "ints", File: maps + "kinds.bpf.o"}, dumps: 1, value: "struct ints"},
		{name: "not defined", paths: []string{maps + "ints.json"},
			source: Source{Map: "others", File: maps + "kinds.bpf.o"}, dumps: 1},
		{name: "formatted by bpftool", paths: []string{drops + "locations.json"}, dumps: 1,
			value: "u64"},
		{name: "several files", paths: []string{drops + "gaps/1.raw", drops + "gaps/2.raw"},
			dumps: 2},
		{name: "no dump", paths: []string{text}, err: mapdump.ErrNotDump},
		{name: "no file", paths: []string{text + ".none"}, err: os.ErrNotExist},
		{name: "a bundle without dumps", paths: []string{"../../fixtures/sampled/stacks.data"},
			source: Source{Map: "none"}, errHas: "no map none in it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.source.File != "" {
				types, err := btf.ReadFile(c.source.File, nil)
				if err != nil {
					t.Fatal(err)
				}
				c.source.Types = types
			}
			in, err := Open(t.Context(), c.paths, c.source, &remarks{})
			if c.err != nil || c.errHas != "" {
				if err == nil || c.err != nil && !errors.Is(err, c.err) ||
					!strings.Contains(err.Error(), c.errHas) {
					t.Fatalf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			if len(in.List) != c.dumps {
				t.Errorf("%d dumps", len(in.List))
			}
			l, value := &in.List[0].Layout, ""
			if l.Types != nil {
				value = l.Types.TypeName(l.Value)
			}
			if value != c.value && c.dumps == 1 {
				t.Errorf("values of type %q, want %q", value, c.value)
			}
			if _, err := in.Last(&remarks{}); errors.Is(err, ErrSeveral) != (c.dumps > 1) {
				t.Errorf("Last: %v", err)
			}
		})
	}
}

// TestValuesOfCutDump prints the pairs before the damage, and logs it.
func TestValuesOfCutDump(t *testing.T) {
	whole := must.Read(t, "../../fixtures/drops/gaps/5.raw")
	path := filepath.Join(t.TempDir(), "cut.raw")
	must.Write(t, path, whole[:len(whole)-4])
	var log remarks
	in, err := Open(t.Context(), []string{path}, Source{}, &log)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	v, err := in.List[0].Values(false, &log)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := v.Write(&out); err != nil || out.Len() == 0 {
		t.Fatalf("printed %q, %v", &out, err)
	}
	v.Report(&log)
	if len(log.damages) != 1 || !strings.HasPrefix(log.damages[0], path) ||
		!slices.ContainsFunc(log.notes, func(s string) bool {
			return strings.Contains(s, "they are bytes")
		}) {
		t.Errorf("log %+v", log)
	}
}
