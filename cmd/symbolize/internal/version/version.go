// Package version has the version of the program.
package version

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Release is the newest version in CHANGELOG.md: of a build of its tag, or the next release of a
// build between tags.
const Release = "0.4.0"

// Info is the version. Its JSON names are an interface.
type Info struct {
	Version  string `json:"version"` // 0.4.0, or 0.4.0-dev+COMMIT between tags
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // the source tree had changes of its own
	Go       string `json:"go"`
	Platform string `json:"platform"`

	Time time.Time `json:"-"` // of the revision
}

// Read returns the version of the running binary.
func Read() Info {
	v := Info{Version: Release + "-dev", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if bi, ok := debug.ReadBuildInfo(); ok {
		v.read(bi)
	}
	return v
}

// pseudoVersion matches the version that Go makes of a commit without a tag.
var pseudoVersion = regexp.MustCompile(`[.-][0-9]{14}-([0-9a-f]{12})(\+dirty)?$`)

// shortRevision is how many digits of a commit a version has, as in Go's pseudo-versions.
const shortRevision = 12

// read reads what Go recorded in the binary: the commit of a build in a clone, the module's version
// of go install.
func (v *Info) read(bi *debug.BuildInfo) {
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
	short := v.Revision[:min(len(v.Revision), shortRevision)]
	switch m := pseudoVersion.FindStringSubmatch(bi.Main.Version); {
	case m != nil && short == "":
		short = m[1]
	case m == nil && strings.HasPrefix(bi.Main.Version, "v"):
		v.Version = strings.TrimPrefix(bi.Main.Version, "v")
		return
	}
	if short != "" {
		v.Version += "+" + short
	}
	if v.Modified {
		v.Version += ".modified"
	}
}

// Text is the version as a line of text.
func Text() string {
	v := Read()
	return fmt.Sprintf("symbolize %s %s %s", v.Version, v.Go, v.Platform)
}
