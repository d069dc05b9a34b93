package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"symbolize/cmd/symbolize/internal/cli"
)

var served = regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+/`)

// startWeb serves a recorded capture and returns the address of its pages. The server ends with the
// test, by an interrupt, which is the normal end.
func startWeb(t *testing.T, flags ...string) (base string) {
	t.Helper()
	const fixtures = "../../fixtures"
	t.Setenv("HOME", t.TempDir()) // of pprof's settings
	store := t.TempDir()
	env, _, stderr := inProcess("--store", store, "index", "-q", filepath.Join(fixtures, "objects"))
	if code := Main(t.Context(), env); code != cli.OK {
		t.Fatalf("index: status %d: %s", code, stderr)
	}
	ctx, cancel := context.WithCancel(context.Background())
	messages, w := io.Pipe()
	env, stdout, _ := inProcess(append([]string{"--store", store, "web", "--with",
		filepath.Join(fixtures, "objects", "bin"), "--source-dir",
		filepath.Join(fixtures, "src"), filepath.Join(fixtures, "captures", "clock.data")}, flags...)...)
	env.Stderr = w
	done := make(chan int, 1)
	go func() {
		code := Main(ctx, env)
		w.Close()
		done <- code
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != cli.OK {
			t.Errorf("status %d", code)
		}
		if stdout.Len() > 0 {
			t.Errorf("on standard output: %s", stdout)
		}
	})
	lines := bufio.NewScanner(messages)
	for base == "" && lines.Scan() {
		base = served.FindString(lines.Text())
	}
	go io.Copy(io.Discard, messages)
	if base == "" {
		t.Fatal("no address is printed")
	}
	return base
}

// TestWeb asks for our page and pprof's pages over a capture: disassembly and source lines come from the file
// in the store's place, and requests under another host's name are refused.
func TestWeb(t *testing.T) {
	base := startWeb(t)
	for _, tt := range []struct{ page, want string }{
		{want: `<title>Report: clock\.data</title>`},
		{page: "ui/", want: "flamegraph"}, // redirected
		{page: "ui/top", want: `"Name":"collatz"`},
		{page: "ui/flamegraph", want: `"longest_below"|collatz`},
		{page: "ui/peek?f=collatz", want: `181\.82ms.*collatz fixed.c:14`},
		{page: "ui/disasm?f=collatz",
			want: `(?s)ROUTINE ======================== collatz.*imul|lea .*collatz`},
		{page: "ui/source?f=collatz", want: `(?s)collatz.*292\.93ms.*return steps;`},
	} {
		status, body := get(t, base+tt.page, "")
		if status != http.StatusOK || !regexp.MustCompile(tt.want).MatchString(body) {
			t.Errorf("%s: status %d, no %s in %d bytes: %s", tt.page, status, tt.want, len(body),
				lastPart(body))
		}
	}
	if status, _ := get(t, base+"ui/top", "evil.example"); status != http.StatusForbidden {
		t.Errorf("a request for another host has status %d", status)
	}
	if status, _ := get(t, base+"ui/nothing", ""); status != http.StatusNotFound {
		t.Errorf("a page that is not there has status %d", status)
	}
}

// TestWebOpen: --open gives the address to the browser that the user has chosen.
func TestWebOpen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a script is xdg-open")
	}
	dir := t.TempDir()
	script := "#!/bin/sh\nprintf %s \"$1\" >'" + dir + "/new'\nmv '" + dir + "/new' '" + dir + "/address'\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	base := startWeb(t, "--open")
	for range 3000 {
		if b, err := os.ReadFile(filepath.Join(dir, "address")); err == nil {
			if string(b) != base {
				t.Errorf("the browser got %q, want %q", b, base)
			}
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("no browser was started")
}

func get(t *testing.T, url, host string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if p := res.Header.Get("Content-Security-Policy"); res.StatusCode != http.StatusForbidden && !strings.Contains(p, "default-src 'none'") {
		t.Errorf("%s has the policy %q", req.URL, p)
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// lastPart is the body of one of pprof's pages without styles and scripts.
func lastPart(page string) string {
	if _, rest, ok := strings.Cut(page, `<div id="content">`); ok {
		page = rest
	}
	return page[:min(len(page), 3000)]
}
