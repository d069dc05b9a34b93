package main

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/cmd/symbolize/internal/suggest"
	"symbolize/fixtures/sweep"
)

// everyCommand calls visit for each command of the program that does something.
func everyCommand(visit func(path []string, cmd *cobra.Command)) {
	env, _, _ := inProcess()
	var walk func(path []string, cmd *cobra.Command)
	walk = func(path []string, cmd *cobra.Command) {
		cmd.InitDefaultHelpFlag()
		if len(path) > 0 && !cmd.HasSubCommands() {
			visit(path, cmd)
		}
		for _, sub := range cmd.Commands() {
			walk(append(path[:len(path):len(path)], sub.Name()), sub)
		}
	}
	walk(nil, newRootCommand(&cli.App{Env: env}))
}

// TestLetters: each letter is short for one flag, whatever the command. Two commands accept the
// command lines of other tools; the letters of these are separate lists.
func TestLetters(t *testing.T) {
	letters := map[string]string{
		"a": "all-cpus", "e": "exe", "F": "frequency", "h": "help", "j": "jobs", "n": "limit",
		"o": "output", "p": "pid", "q": "quiet", "v": "verbose",
	}
	tools := map[string]string{
		"lookup -a": "addresses", "lookup -C": "demangled", "lookup -f": "functions",
		"lookup -i": "inlines", "lookup -p": "pretty-print", "lookup -s": "basenames",
		"perf_to_profile -f": "force", "perf_to_profile -i": "input", "perf_to_profile -j": "jit",
	}
	everyCommand(func(path []string, cmd *cobra.Command) {
		check := func(f *pflag.Flag) {
			if f.Shorthand == "" {
				return
			}
			name := strings.Join(path, " ") + " -" + f.Shorthand
			want, ok := letters[f.Shorthand]
			if other, of := tools[name]; of && (cli.GroupOf(f) == cli.GroupTools || cmd.Hidden) {
				want, ok = other, true
				delete(tools, name)
			}
			switch {
			case !ok:
				t.Errorf("%s is short for --%s, and in no list", name, f.Name)
			case want != f.Name:
				t.Errorf("%s is short for --%s, elsewhere for --%s", name, f.Name, want)
			}
		}
		cmd.LocalFlags().VisitAll(check)
		cmd.InheritedFlags().VisitAll(check)
		for letter, long := range letters { // a flag that has a letter has it everywhere
			if f := cmd.Flags().Lookup(long); f != nil && f.Shorthand != letter {
				t.Errorf("%s --%s has not the letter -%s", strings.Join(path, " "), long, letter)
			}
		}
	})
	for name := range tools {
		t.Errorf("%s is no flag any more", name)
	}
}

var (
	quotedCommand = regexp.MustCompile("`symbolize ([^`]*)`")
	flagInText    = regexp.MustCompile(`(?:^| )(--?[a-zA-Z][a-z-]*)`)
)

// TestSuggestions: the hints for words of other tools name commands and flags that exist.
func TestSuggestions(t *testing.T) {
	env, _, _ := inProcess()
	root := newRootCommand(&cli.App{Env: env})
	known := func(cmd *cobra.Command, flag string) bool {
		if name, long := strings.CutPrefix(flag, "--"); long {
			return cmd.Flags().Lookup(name) != nil
		}
		return cmd.Flags().ShorthandLookup(flag[1:]) != nil
	}
	commands := 0
	for _, hint := range suggest.Hints() {
		for _, m := range quotedCommand.FindAllStringSubmatch(hint, -1) {
			line, _, _ := strings.Cut(m[1], " -- ")
			cmd, _, err := root.Find(strings.Fields(line))
			if err != nil || !cmd.HasParent() {
				t.Errorf("%s: no command: %v", hint, err)
				continue
			}
			commands++
			for _, f := range flagInText.FindAllStringSubmatch(line, -1) {
				if !known(cmd, f[1]) {
					t.Errorf("%s: %s has no flag %s", hint, cmd.Name(), f[1])
				}
			}
		}
	}
	if commands < 40 {
		t.Errorf("%d commands in the hints", commands)
	}
}

// libraryText are words of Go's libraries, of pflag and of cobra in errors.
var libraryText = regexp.MustCompile(`strconv\.|invalid (argument|syntax|duration|value)|` +
	`parse error|parsing|value out of range|arg\(s\)|unknown unit|missing unit|regexp:|` +
	`%!|0x[0-9a-f]{6,}|<nil>|\*[a-z]+\.[A-Z]|panic|goroutine|shorthand`)

// wrongValues are values that some kind of flag refuses.
var wrongValues = []string{"wrong", "-1", "", "99999999999999999999", "1e999", "NaN", "5x", "[",
	"(", "a\"b", "=", ":", ",", "x=y", "1:2:3:4", "\x1b[2J", "uprobe:x", "log2:x", "10%-5%", "5,1"}

// TestWrongValues calls every flag of every command with values that are wrong for it, of a sample
// with a seed: each message is in words of this program, on lines that begin with its name.
func TestWrongValues(t *testing.T) {
	t.Chdir(t.TempDir())
	rnd := sweep.Rand(t)
	seen := make(map[string]bool)
	everyCommand(func(path []string, cmd *cobra.Command) {
		visit := func(f *pflag.Flag) {
			if f.Name == "help" || f.Name == "version" {
				return
			}
			of := len(wrongValues)
			known := seen[f.Name+f.Usage]
			if known { // one flag of many commands
				of = 1
			}
			seen[f.Name+f.Usage] = true
			for i := range sweep.Of(rnd, of, 6) {
				value := wrongValues[i]
				if f.Name == "output" || f.Name == "store" {
					value = "nowhere/" + value + "/" // what others write is below missing
				}
				callWrong(t, append(path[:len(path):len(path)], fmt.Sprintf("--%s=%s", f.Name,
					value),
					"--store=missing/store", "missing.data"))
			}
			if f.NoOptDefVal == "" && !known {
				callWrong(t, append(path[:len(path):len(path)], "--"+f.Name))
			}
		}
		cmd.LocalFlags().VisitAll(visit)
		cmd.InheritedFlags().VisitAll(visit)
		for _, args := range [][]string{{}, {"a", "b", "c"}, {"--no-such-flag"}, {"-Z"}, {"---x"}} {
			callWrong(t, append(path[:len(path):len(path)], args...))
		}
	})
}

// callWrong runs a command line that cannot work, and judges its messages.
func callWrong(t *testing.T, args []string) {
	t.Helper()
	if args[0] == "capture" && len(args) > 2 { // were it right, it would record
		args = args[:2]
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	env, stdout, stderr := inProcess(args...)
	code := Main(ctx, env)
	for line := range strings.Lines(stderr.String()) {
		if m := libraryText.FindString(line); m != "" {
			t.Errorf("%q: text of a library, %q:\n%s", args, m, line)
		}
		if code != cli.OK && stdout.Len() == 0 && !strings.HasPrefix(line, "symbolize: ") {
			t.Errorf("%q: exit status %d, a line of another form: %q", args, code, line)
		}
	}
}

// TestCommandsAreFreed: nothing keeps the commands of a run, with its buffers, when it has ended.
func TestCommandsAreFreed(t *testing.T) {
	env, _, _ := inProcess("version")
	freed := make(chan bool)
	runtime.AddCleanup(env.Stdout.(*bytes.Buffer), func(int) { close(freed) }, 0)
	Main(t.Context(), env)
	env = nil
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		runtime.GC()
		select {
		case <-freed:
			return
		case <-time.After(time.Millisecond):
		}
	}
	t.Error("the output of a run is kept")
}

// TestWritesStore finds the commands that write, wherever their flags are.
func TestWritesStore(t *testing.T) {
	for line, want := range map[string]bool{
		"index /usr/lib": true, "--store x index y": true, "store --store x gc": true,
		"store import -": true, "store rebuild": true, "store ls": false, "store": false,
		"resolve index": false, "": false, "nonsense": false, "index --help": true,
	} {
		if got := newProgram(&cli.Env{}).writesStore(strings.Fields(line)); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}
