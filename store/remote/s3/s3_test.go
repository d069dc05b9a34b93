package s3

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"symbolize/store"
	"symbolize/store/httpretry"
	"symbolize/store/remote"
)

// written is when the objects of a fake were.
var written = time.Date(2006, 1, 2, 15, 4, 5, 0, time.UTC)

// fake is a server of one bucket.
type fake struct {
	mu      sync.Mutex
	objects map[string][]byte
	seen    []string // method and key of requests
	// bad answers a request in place of the server if it returns true; n is how many of this method
	// and key were before.
	bad func(n int, w http.ResponseWriter, r *http.Request) bool
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/bucket"), "/")
	body := decoded(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	name := r.Method + " " + key
	n := 0
	for _, s := range f.seen {
		if s == name {
			n++
		}
	}
	f.seen = append(f.seen, name)
	if f.bad != nil {
		f.mu.Unlock()
		done := f.bad(n, w, r)
		f.mu.Lock()
		if done {
			return
		}
	}
	data, there := f.objects[key]
	switch {
	case key == "":
		f.list(w, r.URL.Query().Get("prefix"))
	case r.Method == http.MethodPut && there && r.Header.Get("If-None-Match") == "*":
		answer(w, http.StatusPreconditionFailed, "PreconditionFailed")
	case r.Method == http.MethodPut:
		f.objects[key] = body
		w.Header().Set("ETag", `"1"`)
	case r.Method == http.MethodDelete:
		delete(f.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case !there:
		answer(w, http.StatusNotFound, "NoSuchKey")
	default:
		head(w, len(data))
		if r.Method == http.MethodGet {
			w.Write(data)
		}
	}
}

func head(w http.ResponseWriter, size int) {
	w.Header().Set("Content-Length", strconv.Itoa(size))
	w.Header().Set("Last-Modified", written.Format(http.TimeFormat))
	w.Header().Set("ETag", `"1"`)
}

// answer sends an error.
func answer(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", code)
}

func (f *fake) list(w http.ResponseWriter, prefix string) {
	type object struct {
		Key, LastModified string
		Size              int
	}
	var out struct {
		XMLName  xml.Name `xml:"ListBucketResult"`
		Contents []object
	}
	for key := range f.objects {
		if strings.HasPrefix(key, prefix) {
			out.Contents = append(out.Contents, object{key, written.Format(time.RFC3339),
				len(f.objects[key])})
		}
	}
	slices.SortFunc(out.Contents, func(a, b object) int { return strings.Compare(a.Key, b.Key) })
	b, _ := xml.Marshal(out)
	w.Write(b)
}

// decoded reads the body of a request, in chunks that may be signed one by one.
func decoded(r *http.Request) (data []byte) {
	if r.Header.Get("X-Amz-Decoded-Content-Length") == "" {
		data, _ = io.ReadAll(r.Body)
		return data
	}
	for in := bufio.NewReader(r.Body); ; {
		line, err := in.ReadString('\n')
		digits, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		n, bad := strconv.ParseInt(digits, 16, 32)
		if err != nil || bad != nil || n == 0 {
			return data
		}
		chunk := make([]byte, n+2)
		io.ReadFull(in, chunk)
		data = append(data, chunk[:n]...)
	}
}

// start starts a server and returns the bucket below a prefix of it. A busy machine gets the time
// that it needs.
func start(t *testing.T, f *fake) *Bucket {
	t.Helper()
	return startWithin(t, f, time.Minute)
}

// startWithin is start with a time in which something has to come from the server.
func startWithin(t *testing.T, f *fake, within time.Duration) *Bucket {
	t.Helper()
	if f.objects == nil {
		f.objects = make(map[string][]byte)
	}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return open(t, fmt.Sprintf("s3://bucket/some/prefix?retries=2&timeout=%v&endpoint=%s", within,
		server.URL), nil)
}

func open(t *testing.T, url string, base http.RoundTripper) *Bucket {
	t.Helper()
	env := map[string]string{"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "secret"}
	o, err := Parse(url, func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	o.Wait, o.base = time.Millisecond, base
	b, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBucket(t *testing.T) {
	f := &fake{}
	b, ctx := start(t, f), t.Context()
	if _, err := b.Get(ctx, "a/b", 10); !errors.Is(err, remote.ErrNotFound) ||
		!strings.HasPrefix(err.Error(), "s3://bucket/some/prefix/a/b: ") {
		t.Errorf("absent: %v", err)
	}
	if _, err := b.Stat(ctx, "a/b"); !errors.Is(err, remote.ErrNotFound) {
		t.Errorf("absent: %v", err)
	}
	for i, want := range []bool{true, false} {
		if created, err := b.Put(ctx, "a/b", []byte("first")); created != want || err != nil {
			t.Errorf("put %d: %t, %v", i, created, err)
		}
	}
	if got := f.objects["some/prefix/a/b"]; string(got) != "first" {
		t.Errorf("the object is %q", got)
	}
	if got, err := b.Get(ctx, "a/b", 5); string(got) != "first" || err != nil {
		t.Errorf("get: %q, %v", got, err)
	}
	if _, err := b.Get(ctx, "a/b", 4); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("a large object: %v", err)
	}
	if e, err := b.Stat(ctx, "a/b"); e.Key != "a/b" || e.Size != 5 || !e.Modified.Equal(written) || err != nil {
		t.Errorf("stat: %+v, %v", e, err)
	}
	if err := b.Replace(ctx, "a/b", []byte("second")); err != nil ||
		string(f.objects["some/prefix/a/b"]) != "second" {
		t.Errorf("replaced: %q, %v", f.objects["some/prefix/a/b"], err)
	}
	f.objects["elsewhere"] = nil
	b.Put(ctx, "a/a", []byte("x"))
	b.Put(ctx, "b", []byte("x"))
	want := []remote.Entry{{Key: "a/a", Size: 1, Modified: written}, {Key: "a/b", Size: 6, Modified: written}}
	if got, err := b.List(ctx, "a/"); err != nil || !slices.Equal(got, want) {
		t.Errorf("list: %v, %v", got, err)
	}
	for range 2 { // the second one is not there
		if err := b.Remove(ctx, "a/b"); err != nil || f.objects["some/prefix/a/b"] != nil {
			t.Errorf("removed: %v", err)
		}
	}
}

// TestFaults: each fault has its message, after as many tries as it is worth.
func TestFaults(t *testing.T) {
	status := func(code int, word string) func(int, http.ResponseWriter, *http.Request) bool {
		return func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			answer(w, code, word)
			return true
		}
	}
	half := func(w http.ResponseWriter) {
		head(w, 1000)
		w.Write(make([]byte, 500))
	}
	for _, tt := range []struct {
		name  string
		bad   func(n int, w http.ResponseWriter, r *http.Request) bool
		want  string // "" for none
		tries int
	}{
		{name: "500", bad: status(500, "InternalError"),
			want: "the server answers 500 InternalError", tries: 3},
		{name: "500 once", bad: func(n int, w http.ResponseWriter, r *http.Request) bool {
			if n == 0 {
				answer(w, 500, "InternalError")
			}
			return n == 0
		}, tries: 2},
		{name: "503 once", bad: func(n int, w http.ResponseWriter, r *http.Request) bool {
			if n == 0 {
				answer(w, 503, "SlowDown")
			}
			return n == 0
		}, tries: 2},
		{name: "refused", bad: status(403, "InvalidAccessKeyId"),
			want: "the server answers 403 InvalidAccessKeyId", tries: 1},
		{name: "no bucket", bad: status(404, "NoSuchBucket"),
			want: "the server answers 404 NoSuchBucket", tries: 1},
		{name: "half", bad: func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			half(w)
			return true
		}, want: "after 500 bytes: unexpected EOF", tries: 3},
		{name: "half once", bad: func(n int, w http.ResponseWriter, _ *http.Request) bool {
			if n == 0 {
				half(w)
			}
			return n == 0
		}, tries: 2},
		{name: "nothing comes", bad: func(_ int, _ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		}, want: "too few bytes arrived in 500ms", tries: 1},
		{name: "half, then nothing",
			bad: func(_ int, w http.ResponseWriter, r *http.Request) bool {
				half(w)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				return true
			}, want: "after 500 bytes: too few bytes arrived in 500ms", tries: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{objects: map[string][]byte{"some/prefix/a": []byte("data")}, bad: tt.bad}
			within := time.Minute
			if strings.Contains(tt.want, "too few bytes") {
				within = 500 * time.Millisecond
			}
			b := startWithin(t, f, within)
			got, err := b.Get(t.Context(), "a", 1<<20)
			f.mu.Lock()
			defer f.mu.Unlock()
			if len(f.seen) != tt.tries {
				t.Errorf("requests %q, want %d", f.seen, tt.tries)
			}
			if tt.want == "" {
				if string(got) != "data" || err != nil {
					t.Errorf("got %q, %v", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) ||
				!strings.HasPrefix(err.Error(), b.URL("a")) || errors.Is(err, remote.ErrNotFound) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// endless writes a text again and again until the client goes, or has much more than it should read.
func endless(w http.ResponseWriter, r *http.Request, text string, pause time.Duration) {
	for sent := 0; sent < 4*maxAnswer && r.Context().Err() == nil; sent += len(text) {
		io.WriteString(w, text)
		if pause > 0 {
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(pause):
			}
		}
	}
}

// TestHostile: a server can neither hold the client nor fill its memory.
func TestHostile(t *testing.T) {
	const page = "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>%d" +
		"</NextContinuationToken>%s</ListBucketResult>"
	const entry = "<Contents><Key>some/prefix/%07d</Key><LastModified>2006-01-02T15:04:05Z</LastModified>" +
		"</Contents>"
	get := func(b *Bucket) error { _, err := b.Get(t.Context(), "a", 1<<20); return err }
	list := func(b *Bucket) error { _, err := b.List(t.Context(), "a"); return err }
	for _, tt := range []struct {
		name   string
		answer func(n int, w http.ResponseWriter, r *http.Request)
		do     func(b *Bucket) error
		within time.Duration
		keys   int // of a listing, at most; 0 for maxKeys
		want   string
		is     error
		tries  int
	}{
		{name: "a byte at a time", do: get, within: 500 * time.Millisecond, tries: 1,
			answer: func(_ int, w http.ResponseWriter, r *http.Request) {
				head(w, 1<<20)
				endless(w, r, "x", 10*time.Millisecond)
			}, want: "too few bytes arrived in 500ms", is: httpretry.ErrStalled},
		{name: "an object without end", do: get, tries: 1,
			answer: func(_ int, w http.ResponseWriter, r *http.Request) {
				head(w, 100)
				w.Header().Del("Content-Length")
				endless(w, r, strings.Repeat("x", 1<<16), 0)
			}, is: store.ErrTooLarge},
		{name: "an error without end", do: get, tries: 1,
			answer: func(_ int, w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusForbidden)
				endless(w, r, "<Error><Code>"+strings.Repeat("x", 1<<16), 0)
			}, want: "s3://bucket/some/prefix/a: "},
		{name: "a page without end", do: list, tries: 1,
			answer: func(_ int, w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "<ListBucketResult>")
				endless(w, r, fmt.Sprintf(entry, 1), 0)
			}, is: store.ErrTooLarge},
		{name: "pages without end", do: list, keys: 100,
			answer: func(n int, w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, page, n, fmt.Sprintf(entry, n))
			}, want: "a list of over 100 keys", is: store.ErrTooLarge},
		{name: "later", do: get, tries: 1,
			answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "100000")
				answer(w, http.StatusServiceUnavailable, "SlowDown")
			}, want: "the server answers 503 SlowDown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{bad: func(n int, w http.ResponseWriter, r *http.Request) bool {
				tt.answer(n, w, r)
				return true
			}}
			within := time.Minute
			if tt.within > 0 {
				within = tt.within
			}
			b := startWithin(t, f, within)
			if tt.keys > 0 {
				b.maxKeys = tt.keys
			}
			err := tt.do(b)
			if err == nil || !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v, want %q, %v", err, tt.want, tt.is)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if tt.tries > 0 && len(f.seen) != tt.tries {
				t.Errorf("requests %q, want %d", f.seen, tt.tries)
			}
		})
	}
}

type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

func TestNetwork(t *testing.T) {
	b := open(t, "s3://bucket?endpoint=http://nowhere.example", failing{&net.DNSError{
		Err: "no such host", Name: "nowhere.example", IsNotFound: true}})
	for what, do := range map[string]func() error{
		"get":    func() error { _, err := b.Get(t.Context(), "a", 1); return err },
		"stat":   func() error { _, err := b.Stat(t.Context(), "a"); return err },
		"remove": func() error { return b.Remove(t.Context(), "a") },
		"put":    func() error { _, err := b.Put(t.Context(), "a", nil); return err },
		"list":   func() error { _, err := b.List(t.Context(), "a"); return err },
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "lookup nowhere.example: no such host") ||
			!strings.HasPrefix(err.Error(), "s3://bucket/a: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestParse(t *testing.T) {
	env := map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1:7070", "AWS_REGION": "eu-north-1"}
	getenv := func(name string) string { return env[name] }
	o, err := Parse("s3://b/x/y/?timeout=5s&retries=0", getenv)
	if err != nil || o.bucket != "b" || o.prefix != "x/y/" || o.host != "127.0.0.1:7070" || o.secure ||
		o.region != "eu-north-1" || o.Stall != 5*time.Second || o.Retries != 0 {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := Parse("s3://b?endpoint=https://other:1", getenv); err != nil || o.host != "other:1" || !o.secure {
		t.Errorf("%+v, %v", o, err)
	}
	for _, bad := range []string{"s3://", "s3:///x", "s3://me:secret@b", "s3://b?timeout=x", "s3://b?timeout=0s",
		"s3://b?retries=-1", "s3://b?colour=red", "s3://b?endpoint=host", "s3://b?endpoint=ftp://host"} {
		if _, err := Parse(bad, getenv); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
