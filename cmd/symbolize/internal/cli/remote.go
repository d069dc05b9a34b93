package cli

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/pflag"

	"symbolize/analyze"
	"symbolize/analyze/table"
	"symbolize/ingest/files"
	"symbolize/ingest/texts"
	"symbolize/store/remote"
	"symbolize/store/remote/s3"
)

// remoteEnv is the environment variable with the default of --remote.
const remoteEnv = "SYMBOLIZE_REMOTE"

// RemoteFlag is --remote, of commands that name code.
type RemoteFlag struct {
	url string
	set bool // the command has the flag, and so the variable counts
	// Used is the URL of either.
	Used string
}

// AddFlag adds the flag to a command.
func (f *RemoteFlag) AddFlag(fs *pflag.FlagSet) {
	f.set = true
	AddGroup(fs, GroupSymbols, func(fs *pflag.FlagSet) {
		fs.StringVar(&f.url, "remote", "", "fetch symbol tables that the store lacks from `URL`, a "+
			"directory or bucket that `store push` filled, and keep them (default $"+remoteEnv+")")
	})
}

// Given reports whether the flag or its variable is given.
func (f *RemoteFlag) Given(a *App) bool {
	return f.url != "" || f.set && a.Env.Getenv(remoteEnv) != ""
}

// OpenRemote returns the bucket of --remote or the variable; nil for none.
func (a *App) OpenRemote(f *RemoteFlag) (remote.Bucket, error) {
	text := f.url
	if text == "" && f.set {
		text = a.Env.Getenv(remoteEnv)
	}
	if f.Used = text; text == "" {
		return nil, nil
	}
	return a.OpenBucket(text)
}

// WritesRemote reports whether a command line writes tables of a bucket to the store.
func WritesRemote(fs *pflag.FlagSet, args []string, getenv func(string) string) bool {
	if fs.Lookup("remote") == nil {
		return false
	}
	for _, arg := range args {
		if arg == "--remote" || strings.HasPrefix(arg, "--remote=") {
			return true
		}
	}
	return getenv(remoteEnv) != ""
}

// OpenBucket returns the bucket of a URL, or of a directory.
func (a *App) OpenBucket(text string) (remote.Bucket, error) {
	scheme, _, ok := strings.Cut(text, "://")
	if !ok {
		return remote.OpenDir(text), files.CheckLinks(text)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, Usagef("%v", err)
	case scheme == "file" && u.Host == "" && u.Path != "":
		return remote.OpenDir(u.Path), files.CheckLinks(u.Path)
	case scheme == "s3":
		o, err := s3.Parse(text, a.Env.Getenv)
		if err != nil {
			return nil, Usagef("%v", err)
		}
		b, err := s3.Open(o)
		if err != nil {
			return nil, err
		}
		return remote.Listed(b), nil
	}
	return nil, texts.WithHint(Usagef("%s: not a directory or bucket for symbol tables", text),
		"name a directory, file:///DIRECTORY or s3://BUCKET/PREFIX")
}

// NotePulled prints how many objects of a session came from where.
func (a *App) NotePulled(s *analyze.Session) {
	if res := s.State().Pulled; res.Asked > 0 {
		a.Aside("--remote: " + PulledText(&res))
	}
}

// PulledText is the figures of a pull.
func PulledText(res *remote.PullResult) string {
	return fmt.Sprintf("%s there, %d taken with %s; %s fetched, %s",
		table.Count(res.Found, "object is", "objects are"), res.Changed,
		table.Count(res.Tables, "table", "tables"), table.Count(res.Fetched, "file", "files"),
		table.Bytes(res.Bytes))
}
