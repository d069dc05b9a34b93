package pprofui_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"symbolize/analyze/annotate"
	"symbolize/analyze/pprofui"
	"symbolize/analyze/report"
	"symbolize/fixtures/profilebuild"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

// loop is code: push %rbp; test; je 12; 6: dec; jne 6; call 0; jmp 6; 12: pop; ret.
const loop = "\x55\x48\x85\xff\x74\x0c\x48\xff\xcf\x75\xfb\xe8\xf0\xff\xff\xff\xeb\xf4\x5d\xc3"

// source gives the function loop its code.
type source struct{}

func (source) Code(_ *ingest.Object, f *annotate.HotFunction) (*annotate.Code, error) {
	if f.SystemName != "loop" {
		return nil, errors.New("no file with this build ID")
	}
	lines := func(offsets []int) []annotate.CodeLine {
		list := make([]annotate.CodeLine, len(offsets))
		for i, at := range offsets {
			list[i] = annotate.CodeLine{File: "/src/main.c", Line: uint32(1 + at/10)}
		}
		return list
	}
	return &annotate.Code{Machine: "x86_64", PC: 0x401000, Bytes: []byte(loop), Lines: lines}, nil
}

// profile has samples of a function with code and of one without, and of a kernel.
func profile() *ingest.Profile {
	b := profilebuild.New(profilebuild.Clock())
	app := b.Object(ingest.Object{File: ingest.FileRef{Path: "/opt/app"}})
	kernel := b.Object(ingest.Object{Kind: ingest.Kernel, File: ingest.FileRef{Path: "[kernel.kallsyms]"}})
	row := func(o profilebuild.Object, off addr.Offset, weight uint64, name string, in uint64) {
		p := profilebuild.Place{Object: o, Offset: off}
		b.Name(p, in, profilebuild.Frame{Name: name, File: "/src/main.c", StartLine: 1, Line: 2})
		b.Row(profilebuild.Row{PID: -1, TID: -1, CPU: -1, Count: 1, Weight: weight, Stack: []profilebuild.Place{p}})
	}
	row(app, 0x1009, 600e6, "loop", 9)
	row(app, 0x100b, 300e6, "loop", 0xb)
	row(app, 0x9004, 50e6, "gone", 4)
	row(kernel, 0x500, 50e6, "vfs_read", 0)
	return b.Profile()
}

// served is a server with what it said.
type served struct {
	base string
	end  func() error // ends the server and returns its error

	mu   sync.Mutex
	said []string
}

// serve serves the profile until the test ends.
func serve(t *testing.T, code func() (*pprofui.Code, error)) *served {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())     // of pprof's settings
	sources := filepath.Join(t.TempDir(), "src") // of /src/main.c
	err := errors.Join(os.Mkdir(sources, 0o700),
		os.WriteFile(filepath.Join(sources, "main.c"), []byte("first line\nsecond line\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &served{base: "http://" + ln.Addr().String() + "/"}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- pprofui.Serve(ctx, profile(), ln, pprofui.Options{Code: code, SourcePath: sources,
			Demangler: report.NewDemangler(report.None), Report: func(text string) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.said = append(s.said, text)
			}})
	}()
	s.end = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := s.end(); err != nil {
			t.Errorf("the server ends with %v", err)
		}
	})
	return s
}

// loads returns a source of code that counts how often it is loaded.
func loads() (count *atomic.Int32, code func() (*pprofui.Code, error)) {
	count = new(atomic.Int32)
	return count, func() (*pprofui.Code, error) {
		count.Add(1)
		return &pprofui.Code{Profile: profile(), Source: source{}}, nil
	}
}

// ask makes a request; header has names and values in turn, Host among them.
func (s *served) ask(t *testing.T, method, page string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.base+page, nil)
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
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

// TestServe asks for pprof's pages: code comes from the source of code, when it is first needed.
func TestServe(t *testing.T) {
	count, code := loads()
	s := serve(t, code)
	for _, tt := range []struct {
		page, want string
		loaded     int32
	}{
		{want: `flamegraph`}, // redirected
		{page: "ui/top", want: `"Name":"loop"`},
		{page: "ui/flamegraph", want: `vfs_read`},
		{page: "ui/peek?f=loop", want: `900ms.*loop main\.c`},
		{page: "ui/disasm?f=loop", loaded: 1, want: `(?s)ROUTINE =+ loop\n.*600ms.*jne .*300ms.*call`},
		{page: "ui/source?f=loop", loaded: 1, want: `(?s)loop.*900ms.*first line`},
	} {
		res, body := s.ask(t, http.MethodGet, tt.page)
		if res.StatusCode != http.StatusOK || !regexp.MustCompile(tt.want).MatchString(body) {
			t.Errorf("%q: status %d, no %s in %d bytes: %s", tt.page, res.StatusCode, tt.want, len(body),
				lastPart(body))
		}
		if p := res.Header.Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'none'; ") {
			t.Errorf("%q has the policy %q", tt.page, p)
		}
		if got := count.Load(); got != tt.loaded {
			t.Errorf("after %q code was loaded %d times, want %d", tt.page, got, tt.loaded)
		}
	}
	if err := s.end(); err != nil {
		t.Errorf("the server ends with %v", err)
	}
	if _, err := http.Get(s.base); err == nil {
		t.Error("the listener is open after the end")
	}
}

// lastPart is the body of one of pprof's pages without styles and scripts.
func lastPart(page string) string {
	_, rest, _ := strings.Cut(page, `<div id="content">`)
	rest, _, _ = strings.Cut(rest, "<script")
	return rest[:min(len(rest), 3000)]
}

// TestNoCode: listings of functions without code are refused or empty, and other pages are served.
func TestNoCode(t *testing.T) {
	for name, code := range map[string]func() (*pprofui.Code, error){
		"no function": func() (*pprofui.Code, error) { return &pprofui.Code{Profile: profile(), Source: source{}}, nil },
		"no store":    func() (*pprofui.Code, error) { return nil, errors.New("the store is locked") },
	} {
		s := serve(t, code)
		for page, want := range map[string]int{"ui/disasm?f=gone": http.StatusBadRequest,
			"ui/source?f=gone": http.StatusOK, "ui/top": http.StatusOK} {
			res, body := s.ask(t, http.MethodGet, page)
			if res.StatusCode != want || strings.Contains(body, "push ") {
				t.Errorf("%s: %s: status %d, want %d: %s", name, page, res.StatusCode, want, lastPart(body))
			}
		}
		s.mu.Lock()
		if said := strings.Join(s.said, "\n"); !strings.Contains(said, "no matches found for regexp gone") {
			t.Errorf("%s: the server says %q", name, said)
		}
		s.mu.Unlock()
	}
}

// TestRefused: pages of other sites get nothing, and nothing changes a file of settings.
func TestRefused(t *testing.T) {
	_, code := loads()
	s := serve(t, code)
	host := strings.Trim(strings.TrimPrefix(s.base, "http:"), "/")
	_, port, _ := net.SplitHostPort(host)
	for _, tt := range []struct {
		name, method, page string
		header             []string
		want               int
	}{
		{name: "by number", want: http.StatusOK, header: []string{"Host", host}},
		{name: "by name", want: http.StatusOK, header: []string{"Host", "localhost:" + port}},
		{name: "another host", header: []string{"Host", "evil.example"}},
		{name: "another host, this port", header: []string{"Host", "evil.example:" + port}},
		{name: "another port of this host", header: []string{"Host", "127.0.0.1:1"}},
		{name: "no such page", page: "ui/nothing", want: http.StatusNotFound},
		{name: "below no page", page: "nothing", want: http.StatusNotFound},
		{name: "icon", page: "favicon.ico", want: http.StatusNoContent},
		{name: "view saved", page: "ui/saveconfig?config=x"},
		{name: "view deleted", page: "ui/deleteconfig?config=x"},
		{name: "head", method: http.MethodHead, want: http.StatusOK},
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
		if tt.page == "" {
			tt.page = "ui/top"
		}
		if tt.want == 0 {
			tt.want = http.StatusForbidden
		}
		res, body := s.ask(t, tt.method, tt.page, tt.header...)
		if res.StatusCode != tt.want {
			t.Errorf("%s: status %d, want %d", tt.name, res.StatusCode, tt.want)
		}
		if tt.want == http.StatusForbidden && strings.Contains(body, "vfs_read") {
			t.Errorf("%s: the refusal has names", tt.name)
		}
	}
	if entries, err := os.ReadDir(os.Getenv("XDG_CONFIG_HOME")); err != nil || len(entries) > 0 {
		t.Errorf("settings: %v, %v", entries, err)
	}
}
