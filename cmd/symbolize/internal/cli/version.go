package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"
)

// Version is the version. Its JSON names are an interface.
type Version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source tree, when it was built from one
	Modified bool   `json:"modified,omitempty"` // the tree had changes of its own
	Go       string `json:"go"`
	Platform string `json:"platform"`

	Time time.Time `json:"-"` // of the revision
}

// ReadVersion returns the version of the running binary.
func ReadVersion() Version {
	v := Version{
		Version:  "(devel)",
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	bi, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if bi.Main.Version != "" {
		v.Version = bi.Main.Version
	}
	for _, s := range bi.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		case "vcs.time":
			v.Time, _ = time.Parse(time.RFC3339, s.Value) // zero where it is malformed
		}
	}
	return v
}

// VersionText is the version as a line of text.
func VersionText() string {
	v := ReadVersion()
	text := "symbolize " + v.Version
	if v.Revision != "" {
		text += " " + v.Revision
	}
	return fmt.Sprintf("%s %s %s", text, v.Go, v.Platform)
}
