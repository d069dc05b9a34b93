package main

import (
	"bufio"
	"context"
	"io"
	"net"
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

// TestWeb asks for the page over a capture. Pages of other sites get nothing.
func TestWeb(t *testing.T) {
	base := startWeb(t)
	host := strings.Trim(strings.TrimPrefix(base, "http:"), "/")
	_, port, _ := net.SplitHostPort(host)
	for _, tt := range []struct {
		name, method, page string
		header             []string // names and values in turn
		want               int
	}{
		{name: "by number", want: http.StatusOK},
		{name: "by name", want: http.StatusOK, header: []string{"Host", "localhost:" + port}},
		{name: "another host", header: []string{"Host", "evil.example"}},
		{name: "another host, this port", header: []string{"Host", "evil.example:" + port}},
		{name: "another port of this host", header: []string{"Host", "127.0.0.1:1"}},
		{name: "no such page", page: "nothing", want: http.StatusNotFound},
		{name: "icon", page: "favicon.ico", want: http.StatusNoContent},
		{name: "form", method: http.MethodPost},
		{name: "put", method: http.MethodPut},
		{name: "own page", want: http.StatusOK,
			header: []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors"}},
		{name: "own page of an old browser", want: http.StatusOK, header: []string{"Origin", "http://" + host}},
		{name: "address typed", want: http.StatusOK,
			header: []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"}},
		{name: "link elsewhere", want: http.StatusOK, header: []string{"Sec-Fetch-Site", "cross-site",
			"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}},
		{name: "picture elsewhere", header: []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}},
		{name: "frame elsewhere", header: []string{"Sec-Fetch-Site", "cross-site",
			"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}},
		{name: "another port", header: []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"}},
		{name: "old browser", header: []string{"Origin", "http://evil.example"}},
	} {
		if tt.want == 0 {
			tt.want = http.StatusForbidden
		}
		status, body := ask(t, tt.method, base+tt.page, tt.header...)
		title := strings.Contains(body, "<title>Profile: clock.data</title>")
		if status != tt.want || title != (status == http.StatusOK) {
			t.Errorf("%s: status %d, want %d, with the title: %v", tt.name, status, tt.want, title)
		}
	}
}

// TestWebChains: stacks of frame pointers are completed in the page, too.
func TestWebChains(t *testing.T) {
	const dir = "../../fixtures/callers/"
	_, body := ask(t, http.MethodGet, startWeb(t, "--chains", "proven", "--symfs", dir, dir+"callers.data"))
	data, err := pageData(body, "data")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{`"inner"`, `"[callers unknown]"`} {
		if !strings.Contains(string(data), name) {
			t.Errorf("the page has no frame %s", name)
		}
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

// ask makes a request; header has names and values in turn.
func ask(t *testing.T, method, url string, header ...string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
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
