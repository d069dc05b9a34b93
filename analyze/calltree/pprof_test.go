package calltree_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"

	"symbolize/ingest"
	pprofformat "symbolize/ingest/format/pprof"
)

// runPprof runs pprof's own command line in this process on profiles, the first of them the
// source and the others named by number: "1.pb". It returns the report. The options of a run
// stay for those after it, so all that the tests use are given anew.
func runPprof(t *testing.T, profiles []*profile.Profile, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	flags := &pprofFlags{FlagSet: flag.NewFlagSet("pprof", flag.ContinueOnError),
		args: slices.Concat([]string{"-focus=", "-ignore=", "-hide=", "-show=", "-show_from=",
			"-call_tree=false", "-normalize=false", "-symbolize=none"}, args,
			[]string{"-output=out", "0.pb"})}
	err := driver.PProf(&driver.Options{
		Writer: writerTo{&out}, Flagset: flags, Fetch: fetcher(profiles), UI: silentUI{t},
	})
	if err != nil {
		t.Fatalf("pprof %v: %v", args, err)
	}
	return out.String()
}

type pprofFlags struct {
	*flag.FlagSet
	args []string
}

func (f *pprofFlags) StringList(o, d, c string) *[]*string {
	return &[]*string{f.String(o, d, c)}
}
func (f *pprofFlags) ExtraUsage() string      { return "" }
func (f *pprofFlags) AddExtraUsage(eu string) {}
func (f *pprofFlags) Parse(func()) []string {
	if err := f.FlagSet.Parse(f.args); err != nil {
		panic(err)
	}
	return f.Args()
}

type writerTo struct{ io.Writer }

func (w writerTo) Open(string) (io.WriteCloser, error) { return w, nil }
func (w writerTo) Close() error                        { return nil }

type fetcher []*profile.Profile

func (f fetcher) Fetch(src string, _, _ time.Duration) (*profile.Profile, string, error) {
	n, err := strconv.Atoi(strings.TrimSuffix(src, ".pb"))
	if err != nil {
		return nil, "", err
	}
	return f[n].Copy(), src, nil
}

type silentUI struct{ t *testing.T }

func (u silentUI) ReadLine(string) (string, error) { return "", io.EOF }
func (u silentUI) Print(a ...any)                  { u.t.Log(a...) }
func (u silentUI) PrintErr(a ...any)               {}
func (u silentUI) IsTerminal() bool                { return false }
func (u silentUI) WantBrowser() bool               { return false }
func (u silentUI) SetAutoComplete(func(string) string) {
}

// asPprof writes a profile and reads it with the library.
func asPprof(t *testing.T, p *ingest.Profile, name func(string) string) *profile.Profile {
	t.Helper()
	var b bytes.Buffer
	if err := pprofformat.Write(&b, p, pprofformat.WriteOptions{Demangle: name}); err != nil {
		t.Fatal(err)
	}
	prof, err := profile.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	return prof
}

// flatCum is a row of `pprof -top`.
type flatCum struct {
	name      string
	flat, cum int64
}

var inlineMark = regexp.MustCompile(` \((partial-)?inline\)$`)

var topRow = regexp.MustCompile(`^ *(\S+) +\S+% +\S+% +(\S+) +\S+%  (.*)\n$`)

// number reads a value with its unit: "-12ns".
func number(t *testing.T, s string) int64 {
	t.Helper()
	s = strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyz")
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatalf("%q is no value of pprof: %v", s, err)
	}
	return v
}

// pprofTop returns the rows of `pprof -top`, all of them.
func pprofTop(t *testing.T, profiles []*profile.Profile, args ...string) []flatCum {
	t.Helper()
	out := runPprof(t, profiles, append([]string{"-top", "-nodecount=0", "-nodefraction=0",
		"-edgefraction=0", "-source_path=/none", "-unit=ns"}, args...)...)
	_, table, ok := strings.Cut(out, "flat  flat%   sum%        cum   cum%\n")
	if !ok {
		t.Fatalf("no table in %s", out)
	}
	var rows []flatCum
	for line := range strings.Lines(table) {
		f := topRow.FindStringSubmatch(line)
		if f == nil {
			t.Fatalf("%q is no row of pprof", line)
		}
		rows = append(rows, flatCum{name: inlineMark.ReplaceAllString(f[3], ""),
			flat: number(t, f[1]), cum: number(t, f[2])})
	}
	return rows
}

func sortRows(rows []flatCum) {
	slices.SortFunc(rows, func(a, b flatCum) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
}
