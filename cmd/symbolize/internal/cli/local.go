package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"symbolize/ingest/texts"
	"symbolize/store/indexer"
	"symbolize/store/local"
)

// hostEnv is the environment variable that switches off the search on this host, if it is 0.
const hostEnv = "SYMBOLIZE_LOCAL"

// hostOff reports whether the environment says that no file of this host is looked at.
func (a *App) hostOff() bool { return a.Env.Getenv(hostEnv) == "0" }

// Local returns the directories to search for objects that the store lacks: symfs and, unless off,
// this host; nil for none.
func (a *App) Local(symfs []string, off bool) *local.Options {
	off = off || a.hostOff()
	if off && len(symfs) == 0 {
		return nil
	}
	return a.Places(symfs, !off)
}

// Places are the directories below symfs, and with host the directories of this host.
func (a *App) Places(symfs []string, host bool) *local.Options {
	o := &local.Options{Roots: symfs, Host: host}
	o.Start = func() (func(indexer.Progress), func()) {
		bar := a.StartProgress("index", "objects")
		return bar.Update(), bar.Stop
	}
	home := a.Env.Getenv("HOME")
	if home != "" {
		o.PerfCaches = []string{filepath.Join(home, ".debug")}
	}
	// The order of debuginfod_find_debuginfo(3).
	switch cache := a.Env.Getenv("XDG_CACHE_HOME"); {
	case a.Env.Getenv("DEBUGINFOD_CACHE_PATH") != "":
		o.Debuginfod = []string{a.Env.Getenv("DEBUGINFOD_CACHE_PATH")}
	case cache != "":
		o.Debuginfod = []string{filepath.Join(cache, "debuginfod_client")}
	case home != "":
		o.Debuginfod = []string{filepath.Join(home, ".cache", "debuginfod_client"),
			filepath.Join(home, ".debuginfod_client_cache")}
	}
	return o
}

// local are the places of a session's inputs.
func (o *InputOptions) local(a *App) *local.Options {
	places := a.Local(o.Symfs, o.NoLocal)
	if places != nil && o.NoCache {
		places.Debuginfod = nil
	}
	return places
}

// printLocal prints which objects of the captures did not come from the store.
func (s *Session) printLocal() {
	found := local.Found(s.State().Local)
	switch {
	case found == "":
	case len(s.paths) == 0:
		s.App.Aside(found + ", which the store lacks")
	default:
		read := slices.DeleteFunc(slices.Clone(s.paths), func(p string) bool {
			return slices.Contains(s.failed, p)
		})
		flags := ForFlags(read)
		which := strings.Join(flags, " ") + "`"
		if len(flags) > maxSome {
			which = fmt.Sprintf("%s` and so on for %d captures", flags[0], len(flags))
		}
		s.App.Aside(fmt.Sprintf("%s: `symbolize index %s keeps them in the store, and later runs "+
			"are faster", found, which))
	}
}

// ForFlags are the flags of `index` for captures.
func ForFlags(paths []string) []string {
	flags := make([]string, len(paths))
	for i, p := range paths {
		flags[i] = "--for " + texts.ShellWord(p)
	}
	return slices.Compact(flags)
}
