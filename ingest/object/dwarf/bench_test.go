package dwarf

import (
	stddwarf "debug/dwarf"
	stdelf "debug/elf"
	"errors"
	"io"
	"os"
	"testing"
)

// benchFile is the file that the benchmarks read: a Go program, unless
// SYMBOLIZE_DWARF_FILE names another.
func benchFile(b *testing.B) string {
	if path := os.Getenv("SYMBOLIZE_DWARF_FILE"); path != "" {
		return path
	}
	return goBinary(b)
}

// BenchmarkWalk decodes the functions and inlined calls of a file on one goroutine. Bytes are the
// bytes of .debug_info.
func BenchmarkWalk(b *testing.B) {
	d := loadStd(b, benchFile(b))
	d.sec.Line = nil
	b.SetBytes(int64(len(d.sec.Info)))
	b.ReportAllocs()
	for b.Loop() {
		fresh := New(d.sec, d.opts)
		if err := fresh.Walk(b.Context(), 1, func(*Unit) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWalkStd visits the same entries with the standard library, which has no way to do less.
func BenchmarkWalkStd(b *testing.B) {
	f, err := stdelf.Open(benchFile(b))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	info := stdSections(b, f, "").Info
	sd, err := f.DWARF()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(info)))
	b.ReportAllocs()
	for b.Loop() {
		for r := sd.Reader(); ; {
			e, err := r.Next()
			if err != nil {
				b.Fatal(err)
			}
			if e == nil {
				break
			}
		}
	}
}

// BenchmarkLines runs all line number programs. Bytes are the bytes of .debug_line.
func BenchmarkLines(b *testing.B) {
	d := loadStd(b, benchFile(b))
	w := newWalker(d)
	d.scan()
	var res result
	rows := 0
	b.SetBytes(int64(len(d.sec.Line)))
	b.ReportAllocs()
	for b.Loop() {
		rows = 0
		for _, u := range d.units.list {
			if !u.ownsLine {
				continue
			}
			res.reset()
			w.res, w.cur = &res, d.scope(u)
			w.begin(u)
			w.fileTable(u)
			w.runLines(nil)
			rows += len(res.rows)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(max(rows, 1)), "ns/row")
}

// BenchmarkLinesStd reads the same rows with the standard library.
func BenchmarkLinesStd(b *testing.B) {
	f, err := stdelf.Open(benchFile(b))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	line := stdSections(b, f, "").Line
	sd, err := f.DWARF()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		r := sd.Reader()
		for {
			e, err := r.Next()
			if err != nil {
				b.Fatal(err)
			}
			if e == nil {
				break
			}
			r.SkipChildren()
			lr, err := sd.LineReader(e)
			if err != nil {
				b.Fatal(err)
			}
			var row stddwarf.LineEntry
			for lr != nil {
				if err := lr.Next(&row); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}
