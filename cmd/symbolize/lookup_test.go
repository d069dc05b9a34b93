package main

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"
	"time"

	"symbolize/cmd/symbolize/internal/cli"
)

const fixedObject = "../../fixtures/objects/bin/fixed"

// TestLookupInteractive: each line is answered before the next one is written, as
// programs that keep addr2line running need it.
func TestLookupInteractive(t *testing.T) {
	env, _, stderr := inProcess("lookup", "-e", fixedObject, "--style", "gnu")
	in, ask := io.Pipe()
	answers, out := io.Pipe()
	env.Stdin, env.Stdout = in, out
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan int, 1)
	go func() {
		done <- Main(ctx, env)
		out.Close()
	}()
	lines := bufio.NewScanner(answers)
	for range 3 {
		for query, want := range map[string][]string{
			"0x401050": {"_start", "??:?"},
			"401200": {"atof", "/usr/include/x86_64-linux-gnu/bits/stdlib-float.h:27", "main",
				"/srv/app/src/fixed.c:34"},
		} {
			// In two writes: half a line is no query.
			for _, part := range []string{query[:3], query[3:] + "\n"} {
				if _, err := io.WriteString(ask, part); err != nil {
					t.Fatal(err)
				}
			}
			for _, w := range want {
				if !lines.Scan() || lines.Text() != w {
					t.Fatalf("%s: %q, want %q; %s", query, lines.Text(), w, stderr)
				}
			}
		}
	}
	if _, err := io.WriteString(ask, "401050"); err != nil { // the last line may lack its end
		t.Fatal(err)
	}
	ask.Close()
	if !lines.Scan() || lines.Text() != "_start" || !lines.Scan() || lines.Scan() {
		t.Errorf("at the end: %q", lines.Text())
	}
	if status := <-done; status != cli.OK {
		t.Errorf("exit status %d: %s", status, stderr)
	}
}

// runLookupText runs the subcommand over a text.
func runLookupText(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	env, stdout, stderr := inProcess(append([]string{"lookup"}, args...)...)
	env.Stdin = strings.NewReader(stdin)
	if status := Main(t.Context(), env); status != cli.OK {
		t.Fatalf("lookup %v: exit status %d: %s", args, status, stderr)
	}
	return stdout.String()
}

// TestLookupOrder: in whatever order and company addresses come, each has the answer
// that it has alone, in its place.
func TestLookupOrder(t *testing.T) {
	alone := make(map[string]string)
	var queries []string
	for a := 0x400ff0; a < 0x401260; a += 3 {
		q := fmt.Sprintf("%#x", a)
		queries = append(queries, q)
		alone[q] = runLookupText(t, "", "-e", fixedObject, "-a", q)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var text, want strings.Builder
	for range 5000 {
		q := queries[rng.IntN(len(queries))]
		text.WriteString(q + "\n")
		want.WriteString(alone[q])
	}
	if got := runLookupText(t, text.String(), "-e", fixedObject, "-a"); got != want.String() {
		t.Error("answers of a batch differ from those of its addresses alone")
	}
}

// TestLookupBadInput: a reader that fails, a line without end, a writer that fails.
func TestLookupBadInput(t *testing.T) {
	env, _, stderr := inProcess("lookup", "-e", fixedObject)
	env.Stdin = io.MultiReader(strings.NewReader("0x401050\n"), failingReader{})
	if status := Main(t.Context(), env); status != cli.Failed ||
		!strings.Contains(stderr.String(), "standard input: no more") {
		t.Errorf("exit status %d: %s", status, stderr)
	}
	env, _, stderr = inProcess("lookup", "-e", fixedObject)
	long := strings.Repeat("1", 64<<10+1)
	env.Stdin = io.MultiReader(strings.NewReader(long), blocked{t.Context()})
	if status := Main(t.Context(), env); status != cli.Failed ||
		!strings.Contains(stderr.String(), "standard input: a line is longer than 64 KiB") {
		t.Errorf("exit status %d: %s", status, stderr)
	}
	env, stdout, stderr := inProcess("lookup", "-e", fixedObject)
	env.Stdin = strings.NewReader("0x401150\n" + long) // the last line is as long as any other
	if status := Main(t.Context(), env); status != cli.Failed ||
		!strings.HasPrefix(stdout.String(), "collatz\n") ||
		!strings.Contains(stderr.String(), "a line is longer than") {
		t.Errorf("exit status %d: %s%s", status, stdout, stderr)
	}
	env, _, _ = inProcess("lookup", "-e", fixedObject)
	env.Stdin = strings.NewReader("0x401050\n")
	env.Stdout = &failingWriter{err: errors.New("no room")}
	if status := Main(t.Context(), env); status != cli.Failed {
		t.Errorf("exit status %d", status)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	env, _, _ = inProcess("lookup", "-e", fixedObject)
	env.Stdin = blocked{t.Context()}
	if status := Main(ctx, env); status != cli.Interrupted {
		t.Errorf("exit status %d", status)
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("no more") }

// blocked is a reader that waits for the end of the test.
type blocked struct{ ctx context.Context }

func (b blocked) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, io.EOF
}

// TestLookupAgrees asks us and llvm-symbolizer about each byte of code of the fixtures, and with
// SYMBOLIZE_LIVE=1 about every 16th of libc where its debug file is installed. All but the spelling
// of paths is to be equal.
func TestLookupAgrees(t *testing.T) {
	if _, err := exec.LookPath("llvm-symbolizer"); err != nil {
		if os.Getenv("SYMBOLIZE_LIVE") == "1" {
			t.Fatal(err)
		}
		t.Skip("SKIP: llvm-symbolizer is not installed; lookup was not compared with it")
	}
	files := map[string]int{fixedObject: 1, "../../fixtures/objects/bin/mixed.debug": 1,
		"../../fixtures/objects/bin/gone": 1, "../../fixtures/objects/lib/libkernels.so": 1}
	if os.Getenv("SYMBOLIZE_LIVE") == "1" {
		const libc = "/usr/lib/debug/.build-id/93/ac61ec5a8eb1396f9fbd350e3169a558528a40.debug"
		if _, err := os.Stat(libc); err == nil {
			files[libc] = 16
		}
	}
	for file, step := range files {
		input := codeOf(t, file, step)
		cmd := exec.CommandContext(t.Context(), "llvm-symbolizer", "--inlines", "-a", "-e", file)
		cmd.Stdin, cmd.Env = strings.NewReader(input), append(os.Environ(), "DEBUGINFOD_URLS=")
		theirs, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Split(string(theirs), "\n")
		got := strings.Split(runLookupText(t, input, "-e", file, "-a"), "\n")
		if len(got) != len(want) {
			t.Errorf("%s: %d lines, llvm-symbolizer prints %d", file, len(got), len(want))
		}
		bad := 0
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] && comparablePlace(got[i]) != comparablePlace(want[i]) {
				if bad++; bad < 5 {
					t.Errorf("%s: line %d: %s, want %s", file, i+1, got[i], want[i])
				}
			}
		}
		if bad > 0 || len(got) < 100 {
			t.Errorf("%s: %d of %d lines differ", file, bad, len(got))
		}
	}
}

// codeOf lists the addresses in a file's functions.
func codeOf(t *testing.T, file string, step int) string {
	t.Helper()
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	syms, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, s := range syms {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Section != elf.SHN_UNDEF {
			for a := s.Value; a < s.Value+s.Size; a += uint64(step) {
				fmt.Fprintf(&text, "%#x\n", a)
			}
		}
	}
	return text.String()
}

// comparablePlace cleans the path of "FILE:LINE:COLUMN"; it removes one copy of a relative
// compilation directory that occurs twice.
func comparablePlace(line string) string {
	file, number, ok := strings.Cut(line, ":")
	if !ok || file == "??" {
		return line
	}
	parts := strings.Split(path.Clean(file), "/")
	for n := 1; 2*n < len(parts) && parts[0] != ""; n++ {
		if strings.Join(parts[:n], "/") == strings.Join(parts[n:2*n], "/") {
			parts = parts[n:]
			break
		}
	}
	return strings.Join(parts, "/") + ":" + number
}
