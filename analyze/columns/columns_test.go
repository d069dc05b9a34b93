package columns

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"symbolize/analyze/calltree"
	"symbolize/fixtures/golden"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
)

// row is a row as other programs read it, without labels.
type row struct {
	Event   string  `parquet:"event"`
	Unit    string  `parquet:"unit"`
	Samples int64   `parquet:"samples"`
	Value   int64   `parquet:"value"`
	Comm    *string `parquet:"comm"`
	PID     *int32  `parquet:"pid"`
	TID     *int32  `parquet:"tid"`
	CPU     *int32  `parquet:"cpu"`
	Host    *string `parquet:"host"`
	Start   *int64  `parquet:"start"`
	Stack   []frame `parquet:"stack,list"`
}

type frame struct {
	Function string  `parquet:"function"`
	System   *string `parquet:"system_name"`
	File     *string `parquet:"file"`
	Line     *int32  `parquet:"line"`
	Object   string  `parquet:"object"`
	BuildID  *string `parquet:"build_id"`
	Inlined  bool    `parquet:"inlined"`
	Reason   *string `parquet:"reason"`
}

func encode(t *testing.T, p *ingest.Profile, o Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, p, o, 3, 40); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read[T any](t *testing.T, data []byte) []T {
	t.Helper()
	rows, err := parquet.Read[T](bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestGolden: all columns of a profile with objects of every kind.
func TestGolden(t *testing.T) {
	p := profilebuild.EveryKind()
	p.Meta.Host = "web-1"
	data := encode(t, p, Options{Labels: []Label{{"day", "2026-11-25"}, {"value", "of a label"}}})
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	golden.Text(t, "every.txt", func(w io.Writer) error {
		fmt.Fprintln(w, f.Schema())
		for _, kv := range f.Metadata().KeyValueMetadata {
			fmt.Fprintf(w, "%s: %s\n", kv.Key, kv.Value)
		}
		for _, g := range f.RowGroups() {
			rows := g.Rows()
			var list [1]parquet.Row
			for {
				n, err := rows.ReadRows(list[:])
				if n == 0 {
					break
				}
				if err != nil && err != io.EOF {
					return err
				}
				fmt.Fprintln(w, rowText(f.Schema(), list[0]))
			}
			if err := rows.Close(); err != nil {
				return err
			}
		}
		return nil
	})
}

// rowText is a row with the values of each column that are not null.
func rowText(schema *parquet.Schema, r parquet.Row) string {
	var b strings.Builder
	r.Range(func(column int, values []parquet.Value) bool {
		var texts []string
		for _, v := range values {
			texts = append(texts, v.String())
		}
		if text := strings.Join(texts, ", "); text != "<null>" {
			fmt.Fprintf(&b, "\n  %s: %s", strings.Join(schema.Columns()[column], "."), text)
		}
		return true
	})
	return b.String()
}

// TestAgainstTop: sums over rows are those of package calltree, also over several row groups.
func TestAgainstTop(t *testing.T) {
	for seed := range uint64(10) {
		p := profilebuild.Calls(seed, true)
		data := encode(t, p, Options{})
		f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
		if err != nil || len(f.RowGroups()) < 3 {
			t.Fatalf("seed %d: %d row groups, %v", seed, len(f.RowGroups()), err)
		}
		rows := read[row](t, data)
		if len(rows) != len(p.Samples) {
			t.Fatalf("seed %d: %d rows of %d samples", seed, len(rows), len(p.Samples))
		}
		for event := range p.Events {
			flat, cum := make(map[string]uint64), make(map[string]uint64)
			for _, r := range rows {
				if r.Event != p.Events[event].Name {
					continue
				}
				seen := make(map[string]bool)
				for i, fr := range r.Stack {
					key := fr.Function + " of " + fr.Object
					if i == 0 {
						flat[key] += uint64(r.Value)
					}
					if !seen[key] {
						cum[key] += uint64(r.Value)
					}
					seen[key] = true
				}
			}
			top := calltree.NewTop(p, calltree.TopOptions{Options: calltree.Options{Event: event}})
			for _, r := range top.Rows {
				if key := r.Name + " of " + r.Object; flat[key] != r.Flat || cum[key] != r.Cum {
					t.Fatalf("seed %d, %s: %d %d, want %d %d", seed, key, flat[key], cum[key], r.Flat, r.Cum)
				}
			}
			if len(top.Rows) != len(cum) || len(cum) == 0 {
				t.Fatalf("seed %d: %d functions, want %d", seed, len(cum), len(top.Rows))
			}
		}
	}
}

// TestUnnamed: of a profile without names, frames have the names of their objects and a reason;
// a profile without samples is a file without rows.
func TestUnnamed(t *testing.T) {
	p := profilebuild.Calls(1, true)
	p.Names = nil
	for _, r := range read[row](t, encode(t, p, Options{})) {
		for _, f := range r.Stack {
			if f.Reason == nil || *f.Reason != ingest.NotIndexed.String() || f.System != nil ||
				!strings.HasPrefix(f.Function, "[") {
				t.Fatalf("%+v", f)
			}
		}
	}
	if rows := read[row](t, encode(t, &ingest.Profile{}, Options{})); len(rows) != 0 {
		t.Errorf("%d rows of nothing", len(rows))
	}
}

// TestSameBytes: the same profile gives the same bytes, and a failing writer an error.
func TestSameBytes(t *testing.T) {
	p := profilebuild.Calls(3, true)
	first := encode(t, p, Options{})
	for range 5 {
		if !bytes.Equal(first, encode(t, p, Options{})) {
			t.Fatal("other bytes")
		}
	}
	for _, n := range []int{0, 100, len(first) / 2, len(first) - 1} {
		if err := write(&limited{left: n}, p, Options{}, 3, 40); err == nil {
			t.Errorf("no error after %d bytes", n)
		}
	}
}

// limited fails after some bytes.
type limited struct{ left int }

func (l *limited) Write(b []byte) (int, error) {
	if len(b) > l.left {
		return 0, io.ErrShortWrite
	}
	l.left -= len(b)
	return len(b), nil
}

// BenchmarkWrite: bytes are of the frames, as in a Profile.
func BenchmarkWrite(b *testing.B) {
	p := profilebuild.Calls(1, true)
	frames := 0
	for i := range p.Samples {
		for range p.Frames(p.Samples[i].Stack) {
			frames++
		}
	}
	b.SetBytes(int64(frames) * 8)
	for b.Loop() {
		if err := Write(io.Discard, p, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
