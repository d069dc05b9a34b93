package debuginfod

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"symbolize/buildid"
	"symbolize/fixtures/must"
	"symbolize/ingest/object/elf"
)

// program is a file with a build ID, and another one.
func programs(t *testing.T) (files [2][]byte, ids [2]buildid.ID) {
	t.Helper()
	for i, name := range []string{"fixed", "spawn"} {
		b := must.Read(t, "../../fixtures/objects/bin/"+name)
		f, err := elf.Open(name, bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		files[i], ids[i] = b, f.ID
	}
	return files, ids
}

// serve starts a server that answers by a function, which gets the number of the request, from 0.
func serve(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) (
	url string, paths func() []string) {
	var mu sync.Mutex
	var seen []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n := len(seen)
		seen = append(seen, r.URL.Path)
		mu.Unlock()
		answer(n, w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

func options(t *testing.T, servers ...string) Options {
	return Options{Servers: servers, Cache: t.TempDir(), Stall: time.Minute, Retries: 2,
		Wait: time.Millisecond}
}

func TestGet(t *testing.T) {
	files, ids := programs(t)
	whole := func(_ int, w http.ResponseWriter, _ *http.Request) { w.Write(files[0]) }
	for _, tt := range []struct {
		name     string
		answer   func(n int, w http.ResponseWriter, r *http.Request)
		set      func(o *Options)
		want     string // in the error; "" for none
		is       error
		requests int
	}{
		{name: "there", answer: whole, requests: 1},
		{name: "absent",
			answer: func(_ int, w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
			want:   "no server has it", is: ErrNotFound, requests: 1},
		{name: "fails once", answer: func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 0 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			whole(n, w, r)
		}, requests: 2},
		{name: "fails", answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
		}, want: "the server answers 500", requests: 3},
		{name: "refuses", answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
		}, want: "the server answers 403", requests: 1},
		{name: "half, then whole", answer: func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 0 {
				w.Header().Set("Content-Length", fmt.Sprint(len(files[0])))
				w.Write(files[0][:len(files[0])/2])
				return
			}
			whole(n, w, r)
		}, requests: 2},
		{name: "half", answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(files[0])))
			w.Write(files[0][:len(files[0])/2])
		}, want: "unexpected EOF", requests: 3},
		{name: "another file",
			answer: func(_ int, w http.ResponseWriter, _ *http.Request) { w.Write(files[1]) },
			want:   "its build ID is " + ids[1].Hex(), is: ErrWrong, requests: 1},
		{name: "a page",
			answer: func(_ int, w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>login")) },
			want:   "the server sent another file", is: ErrWrong, requests: 1},
		{name: "nothing comes",
			answer: func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			set:    func(o *Options) { o.Stall = 500 * time.Millisecond },
			want:   "too few bytes arrived in 500ms", requests: 1},
		{name: "too large", answer: whole, set: func(o *Options) { o.MaxSize = 1000 },
			want: "more than 1000 bytes: larger than the limit",
			is:   ErrTooLarge, requests: 1},
		{name: "too large, as announced",
			answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", fmt.Sprint(len(files[0])))
				w.Write(files[0])
			}, set: func(o *Options) { o.MaxSize = 1000 },
			want: "bytes: larger than the limit of 1000", is: ErrTooLarge, requests: 1},
		{name: "too slow",
			answer: func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			set:    func(o *Options) { o.Stall, o.MaxTime = 0, 500*time.Millisecond },
			want:   "not complete after 500ms", requests: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, paths := serve(t, tt.answer)
			o := options(t, url)
			if tt.set != nil {
				tt.set(&o)
			}
			path, fetched, err := New(o, nil).Get(t.Context(), ids[0], Debuginfo)
			if got := paths(); len(got) != tt.requests || got[0] != "/buildid/"+ids[0].Hex()+"/debuginfo" {
				t.Errorf("requests %q, want %d", got, tt.requests)
			}
			if tt.want == "" {
				b, err2 := os.ReadFile(path)
				if err := errors.Join(err, err2); err != nil || !fetched || !bytes.Equal(b, files[0]) {
					t.Errorf("got %d bytes, %t, %v", len(b), fetched, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			left, _ := filepath.Glob(filepath.Join(o.Cache, "*", "*"))
			for _, p := range left {
				if fi, err := os.Stat(p); err != nil || fi.Size() > 0 {
					t.Errorf("%s was left", p)
				}
			}
		})
	}
}

// TestCache: no request is made for files in the cache, nor for files that no server had a moment
// ago.
func TestCache(t *testing.T) {
	files, ids := programs(t)
	url, paths := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, ids[0].Hex()) {
			w.Write(files[0])
			return
		}
		http.NotFound(w, r)
	})
	o := options(t, url)
	c := New(o, nil)
	for i := range 2 {
		if _, fetched, err := c.Get(t.Context(), ids[0], Executable); err != nil || fetched != (i == 0) {
			t.Errorf("try %d: %t, %v", i, fetched, err)
		}
		if _, _, err := c.Get(t.Context(), ids[1], Executable); !errors.Is(err, ErrNotFound) {
			t.Errorf("try %d: %v", i, err)
		}
	}
	if got := paths(); len(got) != 2 {
		t.Errorf("requests %q", got)
	}
	must.Write(t, filepath.Join(o.Cache, "cache_miss_s"), []byte("0\n"))
	if _, _, err := c.Get(t.Context(), ids[1], Executable); !errors.Is(err, ErrNotFound) || len(paths()) != 3 {
		t.Errorf("after its time: %v, requests %q", err, paths())
	}
	// A damaged file is replaced.
	path := buildid.DebuginfodPath(ids[0], o.Cache, "executable")
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, files[1], 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, fetched, err := c.Get(t.Context(), ids[0], Executable); err != nil || !fetched {
		t.Errorf("another file in the cache: %t, %v", fetched, err)
	}
}

// TestServers: the next server is asked, and one that always fails is left out.
func TestServers(t *testing.T) {
	files, ids := programs(t)
	bad, badPaths := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
	})
	good, _ := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.Write(files[0]) })
	o := options(t, bad, good)
	o.Retries = 0
	c := New(o, nil)
	for range failuresOfServer + 3 {
		o.Cache = t.TempDir()
		c.opts.Cache = o.Cache
		if _, _, err := c.Get(t.Context(), ids[0], Executable); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(badPaths()); got != failuresOfServer {
		t.Errorf("the failing server had %d requests, want %d", got, failuresOfServer)
	}
}

func TestFileServer(t *testing.T) {
	files, ids := programs(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "buildid", ids[0].Hex(), "executable")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, files[0], 0o600)); err != nil {
		t.Fatal(err)
	}
	c := New(options(t, "file://"+dir), nil)
	if _, _, err := c.Get(t.Context(), ids[0], Executable); err != nil {
		t.Error(err)
	}
	if _, _, err := c.Get(t.Context(), ids[1], Executable); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func TestInterrupted(t *testing.T) {
	_, ids := programs(t)
	ctx, cancel := context.WithCancel(t.Context())
	url, _ := serve(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if _, _, err := New(options(t, url), nil).Get(ctx, ids[0], Executable); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestFromEnv(t *testing.T) {
	headers := filepath.Join(t.TempDir(), "headers")
	must.Write(t, headers, []byte("X-Token: a b\n"))
	env := map[string]string{"DEBUGINFOD_URLS": "https://a/ ima:enforcing  https://b",
		"DEBUGINFOD_TIMEOUT": "5", "DEBUGINFOD_MAXTIME": "7", "DEBUGINFOD_MAXSIZE": "9",
		"DEBUGINFOD_RETRY_LIMIT": "0", "DEBUGINFOD_HEADERS_FILE": headers}
	o, err := FromEnv(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.Servers, []string{"https://a/", "https://b"}) || o.Stall != 5*time.Second ||
		o.MaxTime != 7*time.Second || o.MaxSize != 9 || o.Retries != 0 || o.Header.Get("X-Token") != "a b" {
		t.Errorf("%+v", o)
	}
	o, err = FromEnv(func(string) string { return "" })
	if err != nil || o.MaxTime != 15*time.Minute || o.MaxSize != 16<<30 || o.Stall != 90*time.Second {
		t.Errorf("%+v, %v", o, err)
	}
	env["DEBUGINFOD_MAXSIZE"] = "1G"
	if _, err := FromEnv(func(name string) string { return env[name] }); err == nil {
		t.Error("a size that is no number")
	}
}

// TestRedirects: a server may send requests on to others, without the headers of the options, but
// not to files of this host, nor in a circle.
func TestRedirects(t *testing.T) {
	files, ids := programs(t)
	dir := t.TempDir()
	must.Write(t, filepath.Join(dir, "file"), files[0])
	var token string
	other, _ := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		token = r.Header.Get("X-Token")
		w.Write(files[0])
	})
	for _, tt := range []struct {
		name, to string
		want     string // in the error; "" for none
	}{
		{name: "another server", to: other},
		{name: "a file", to: "file://" + dir + "/file", want: "is not http or https"},
		{name: "a circle", to: "/circle", want: "redirect refused: there were 10"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, _ := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, tt.to, http.StatusFound)
			})
			o := options(t, url)
			o.Header = http.Header{"X-Token": {"secret"}}
			_, _, err := New(o, nil).Get(t.Context(), ids[0], Executable)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil ||
				!strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	if token != "" {
		t.Errorf("another server got the header %q", token)
	}
}

// TestLater: a server that asks for a long pause gets one request; the others go on.
func TestLater(t *testing.T) {
	files, ids := programs(t)
	for _, after := range []string{"100000", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)} {
		busy, asked := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		c := New(options(t, busy), nil)
		for i, want := range []string{"the server asks to be left alone for ", "left out: the server asks"} {
			_, _, err := c.Get(t.Context(), ids[i], Executable)
			if !errors.Is(err, ErrLater) || !strings.Contains(err.Error(), want) {
				t.Errorf("request %d: %v", i, err)
			}
		}
		if got := asked(); len(got) != 1 {
			t.Errorf("requests %q", got)
		}
		other, _ := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { w.Write(files[0]) })
		if _, _, err := New(options(t, busy, other), nil).Get(t.Context(), ids[0], Executable); err != nil {
			t.Error(err)
		}
	}
}

// TestFiles: a server may be a directory, of which only regular files are read.
func TestFiles(t *testing.T) {
	files, ids := programs(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "buildid", ids[0].Hex(), "executable")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
		os.WriteFile(path, files[0], 0o600),
		os.MkdirAll(filepath.Join(dir, "buildid", ids[1].Hex(), "debuginfo"), 0o700)); err != nil {
		t.Fatal(err)
	}
	c := New(options(t, "file://"+dir), nil)
	if _, fetched, err := c.Get(t.Context(), ids[0], Executable); err != nil || !fetched {
		t.Errorf("%t, %v", fetched, err)
	}
	if _, _, err := c.Get(t.Context(), ids[1], Executable); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if _, _, err := c.Get(t.Context(), ids[1], Debuginfo); err == nil || errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

// TestFreeSpace: files leave a reserve on the disk.
func TestFreeSpace(t *testing.T) {
	files, ids := programs(t)
	defer func(old func(string) (int64, error)) { freeBytes = old }(freeBytes)
	for _, announced := range []bool{true, false} {
		freeBytes = func(string) (int64, error) { return reserve + 1000, nil }
		url, _ := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			if announced {
				w.Header().Set("Content-Length", fmt.Sprint(len(files[0])))
			}
			w.Write(files[0])
			w.(http.Flusher).Flush()
		})
		_, _, err := New(options(t, url), nil).Get(t.Context(), ids[0], Executable)
		if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "of 1000, which ") {
			t.Error(err)
		}
	}
}

// TestOneRequest: several processes, as clients of their own, ask once for one file.
func TestOneRequest(t *testing.T) {
	files, ids := programs(t)
	const clients = 4
	var begun sync.WaitGroup
	begun.Add(clients)
	url, paths := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, ids[1].Hex()) {
			http.NotFound(w, r)
			return
		}
		w.Write(files[0][:1000])
		w.(http.Flusher).Flush()
		begun.Wait()
		w.Write(files[0][1000:])
	})
	o := options(t, url)
	var arrived int64
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			o := o
			if i == 0 {
				o.Progress = func(_ string, got, _ int64) { arrived = got }
			}
			c := New(o, nil)
			begun.Done()
			if path, _, err := c.Get(t.Context(), ids[0], Executable); err != nil || path == "" {
				t.Error(err)
			}
			if _, _, err := c.Get(t.Context(), ids[1], Executable); !errors.Is(err, ErrNotFound) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := paths(); len(got) != 2 {
		t.Errorf("requests %q", got)
	}
	if arrived != 0 && arrived != int64(len(files[0])) {
		t.Errorf("progress ends with %d bytes", arrived)
	}
}
