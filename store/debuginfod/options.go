package debuginfod

import (
	"bufio"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"symbolize/ingest/files"
)

// Options are the settings of a Client.
type Options struct {
	Servers []string // base URLs; http, https, or file with a tree of the same paths
	Cache   string   // directory, as ~/.cache/debuginfod_client
	// Stall is the time in which httpretry.StallBytes must arrive; 0 for no limit.
	Stall   time.Duration
	MaxTime time.Duration // of one file; 0 for no bound
	MaxSize int64         // bytes of one file, besides the free space; 0 for no bound
	Header  http.Header   // of each request
	Retries int           // of a request, after the first
	// Progress gets the bytes of a file that have arrived, and all that the server announces, -1 if
	// it does not, whenever some arrive; nil for no call.
	Progress func(url string, got, total int64)
	// Wait is the least time between two tries, which doubles with each; 0 for a second.
	Wait time.Duration
}

// The client's defaults are from elfutils (debuginfod-client-config(7)), except the limits for a
// file's time and size, which are unlimited there. 0 in the environment removes a limit.
const (
	defaultStall   = 90 * time.Second
	defaultRetries = 2
	defaultMaxTime = 15 * time.Minute
	defaultMaxSize = 16 << 30
)

// FromEnv returns the settings of the environment: DEBUGINFOD_URLS, DEBUGINFOD_TIMEOUT and
// DEBUGINFOD_MAXTIME in seconds, DEBUGINFOD_MAXSIZE in bytes, DEBUGINFOD_RETRY_LIMIT and
// DEBUGINFOD_HEADERS_FILE. Words ima:… among the URLs are skipped. The caller sets Cache.
func FromEnv(getenv func(string) string) (Options, error) {
	o := Options{Stall: defaultStall, Retries: defaultRetries, MaxTime: defaultMaxTime,
		MaxSize: defaultMaxSize}
	for _, word := range strings.Fields(getenv("DEBUGINFOD_URLS")) {
		if !strings.HasPrefix(word, "ima:") {
			o.Servers = append(o.Servers, word)
		}
	}
	for _, v := range []struct {
		name string
		set  func(n int64)
	}{
		{"DEBUGINFOD_TIMEOUT", func(n int64) { o.Stall = seconds(n) }},
		{"DEBUGINFOD_MAXTIME", func(n int64) { o.MaxTime = seconds(n) }},
		{"DEBUGINFOD_MAXSIZE", func(n int64) { o.MaxSize = n }},
		{"DEBUGINFOD_RETRY_LIMIT", func(n int64) { o.Retries = int(n) }},
	} {
		text := getenv(v.name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return o, fmt.Errorf("%s is %q, which is not a number", v.name, text)
		}
		v.set(n)
	}
	if path := getenv("DEBUGINFOD_HEADERS_FILE"); path != "" {
		return o, o.readHeaders(path)
	}
	return o, nil
}

// readHeaders reads a file of HTTP headers, one a line.
func (o *Options) readHeaders(path string) error {
	f, err := files.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	o.Header = make(http.Header)
	in := bufio.NewScanner(f)
	for line := 1; in.Scan(); line++ {
		if strings.TrimSpace(in.Text()) == "" {
			continue
		}
		name, value, ok := strings.Cut(in.Text(), ":")
		if !ok {
			return fmt.Errorf("%s:%d: no header of the form \"Name: value\"", path, line)
		}
		o.Header.Add(textproto.TrimString(name), textproto.TrimString(value))
	}
	return in.Err()
}

// seconds returns a duration; one that is too long for the type is shortened to 100 years.
func seconds(n int64) time.Duration { return time.Duration(min(n, 100*365*86400)) * time.Second }
