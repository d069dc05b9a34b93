package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/term"

	"symbolize/fixtures/golden"
	"symbolize/ingest/object/elf"
	"symbolize/store/db"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"symbolize": func() {
			code := run()
			// testscript loses what it has not read from a terminal when the command ends.
			if term.IsTerminal(int(os.Stdout.Fd())) || term.IsTerminal(int(os.Stderr.Fd())) {
				time.Sleep(500 * time.Millisecond)
			}
			os.Exit(code)
		},
	})
}

// TestScript runs the command line's test suite: one behaviour in each file of
// testdata/script, the first word of its name is the subcommand.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       golden.Update(),
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup:               setupScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":      cmdStatus,
			"cutnames":    cmdCutNames,
			"imageless":   cmdImageless,
			"lines":       cmdLines,
			"truncate":    cmdTruncate,
			"damage":      cmdDamage,
			"lock":        cmdLock,
			"interrupt":   cmdInterrupt,
			"bar":         cmdBar,
			"pprof":       cmdPprof,
			"behead":      cmdBehead,
			"inlined":     cmdInlined,
			"labelled":    cmdLabelled,
			"undebug":     cmdUndebug,
			"same":        cmdSame,
			"builds":      cmdBuilds,
			"resolve-all": cmdResolveAll,
			"capture":     cmdCapture,
			"bundle":      cmdBundle,
			"nights":      cmdNights,
			"recording":   cmdRecording,
			"perfdata":    cmdPerfdata,
			"splitbtf":    cmdSplitBTF,
			"mapbtf":      cmdMapBTF,
			"oldmaps":     cmdOldMaps,
			"stacks":      cmdStacks,
			"unpack":      cmdUnpack,
			"pack":        cmdPack,
			"jit":         cmdJIT,
			"page-data":   cmdPageData,
			"same-tests":  cmdSameTests,
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("no condition %q", cond)
		},
	})
}

// setupScript gives each script a store and a home of its own.
func setupScript(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, ".home")
	env.Setenv("HOME", home)
	env.Setenv("SYMBOLIZE_STORE", filepath.Join(env.WorkDir, ".store"))
	env.Setenv("XDG_DATA_HOME", "")
	env.Setenv("SYMBOLIZE_LOCAL", "0") // scripts depend on no file of the machine
	env.Setenv("TERM", "xterm")
	fixtures, err := filepath.Abs("../../fixtures")
	if err != nil {
		return err
	}
	env.Setenv("FIXTURES", fixtures)
	fixed := filepath.Join(fixtures, "objects", "bin", "fixed")
	b, err := os.ReadFile(fixed)
	if err != nil {
		return err
	}
	f, err := elf.Open(fixed, bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	env.Setenv("FIXED_ID", f.ID.Hex())
	env.Setenv("FIXED_LINK", f.ID.Hex()[:2]+"/"+f.ID.Hex()[2:]) // in a tree of build IDs
	return os.MkdirAll(home, 0o755)
}

// cmdStatus is `status N COMMAND ARG…`: runs a command and wants this exit status.
func cmdStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%v: exit status %d, want %d", args[1:], got, want)
	}
}

// cmdTruncate is `truncate N FILE`: leaves the first N bytes.
func cmdTruncate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: truncate N FILE")
	}
	n, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	path := ts.MkAbs(args[1])
	fi, err := os.Stat(path)
	ts.Check(err)
	if fi.Size() <= n {
		ts.Fatalf("%s has only %d bytes", args[1], fi.Size())
	}
	ts.Check(os.Truncate(path, n))
}

// cmdDamage is `damage STORE [GENERATION]`: flips a bit in the middle of all files of facts, inputs
// and published generations, or of one generation, as a failing disk does.
func cmdDamage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: damage STORE [GENERATION]")
	}
	places := []string{"gen/*/*.sst", "facts/*", "inputs/*"}
	if len(args) == 2 {
		places = []string{filepath.Join("gen", args[1], "*.sst")}
	}
	var files []string
	for _, place := range places {
		found, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), place))
		ts.Check(err)
		files = append(files, found...)
	}
	if len(files) == 0 { // tables that were pushed
		err := filepath.WalkDir(ts.MkAbs(args[0]), func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() && !strings.Contains(path, "/htl-") {
				files = []string{path} // the last one
			}
			return err
		})
		ts.Check(err)
	}
	if len(files) == 0 {
		ts.Fatalf("no data in %s", args[0])
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		ts.Check(err)
		b[len(b)/2] ^= 0x10
		ts.Check(os.Remove(path))
		ts.Check(os.WriteFile(path, b, 0o644))
	}
}

// cmdLock is `lock STORE`: holds the store's lock until the script ends, as a second writer does.
func cmdLock(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: lock STORE")
	}
	w, err := db.OpenWriter(context.Background(), ts.MkAbs(args[0]), db.WriterOptions{})
	ts.Check(err)
	ts.Defer(func() { ts.Check(w.Close()) })
}

// cmdPprof is `pprof FILE`: reads a profile with google/pprof's library, checks it, and prints its
// sample types and function names. (`go tool pprof` would be compiled anew in each script's home.)
func cmdPprof(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: pprof FILE")
	}
	p, err := profile.ParseData([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	ts.Check(p.CheckValid())
	out := ts.Stdout()
	fmt.Fprint(out, "sample types:")
	for _, t := range p.SampleType {
		fmt.Fprintf(out, " %s/%s", t.Type, t.Unit)
	}
	fmt.Fprintln(out)
	for _, f := range p.Function {
		fmt.Fprintln(out, f.Name)
	}
}

// cmdBehead is `behead FILE`: removes the first line.
func cmdBehead(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: behead FILE")
	}
	_, rest, _ := strings.Cut(ts.ReadFile(args[0]), "\n")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(rest), 0o644))
}

// cmdInlined is `inlined FILE`: writes a pprof file of one sample, with its only location in
// "inner", inlined into "outer".
func cmdInlined(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: inlined FILE")
	}
	m := &profile.Mapping{ID: 1, Start: 0x1000, Limit: 0x2000, File: "/bin/x", HasFunctions: true}
	inner := &profile.Function{ID: 1, Name: "inner", SystemName: "inner"}
	outer := &profile.Function{ID: 2, Name: "outer", SystemName: "outer"}
	loc := &profile.Location{ID: 1, Mapping: m, Address: 0x1234,
		Line: []profile.Line{{Function: inner, Line: 3}, {Function: outer, Line: 9}}}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}},
		PeriodType: &profile.ValueType{},
		Sample:     []*profile.Sample{{Location: []*profile.Location{loc}, Value: []int64{5}}},
		Mapping:    []*profile.Mapping{m},
		Location:   []*profile.Location{loc},
		Function:   []*profile.Function{inner, outer},
	}
	ts.Check(p.CheckValid())
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(errors.Join(p.Write(f), f.Close()))
}

// openObject reads an ELF file whole.
func openObject(ts interface{ Check(error) }, path string) *elf.File {
	b, err := os.ReadFile(path)
	ts.Check(err)
	f, err := elf.Open(path, bytes.NewReader(b), int64(len(b)))
	ts.Check(err)
	return f
}

// cmdUndebug is `undebug FILE OUT`: writes an ELF file without its debug information, by other names of its sections.
func cmdUndebug(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: undebug FILE OUT")
	}
	b := bytes.ReplaceAll([]byte(ts.ReadFile(args[0])), []byte(".debug_"), []byte(".other_"))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o755))
}
