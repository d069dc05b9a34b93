package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write what the scripts compare with anew")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"symbolize": func() { os.Exit(run()) },
	})
}

// TestScript runs the command line's test suite: one behaviour in each file of
// testdata/script, the first word of its name is the subcommand.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup:               setupScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": cmdStatus,
		},
	})
}

// setupScript gives each script a store and a home of its own.
func setupScript(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, ".home")
	env.Setenv("HOME", home)
	env.Setenv("SYMBOLIZE_STORE", filepath.Join(env.WorkDir, ".store"))
	env.Setenv("XDG_DATA_HOME", "")
	env.Setenv("TERM", "xterm")
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
