package version

import (
	"regexp"
	"runtime/debug"
	"testing"

	"symbolize/fixtures/must"
)

// TestRelease: the version is the newest one in the changelog.
func TestRelease(t *testing.T) {
	b := must.Read(t, "../../../../CHANGELOG.md")
	newest := regexp.MustCompile(`(?m)^## (\S+)`).FindSubmatch(b)
	if newest == nil || string(newest[1]) != Release {
		t.Errorf("the newest heading is %q, Release %q", newest, Release)
	}
}

func TestVersionRead(t *testing.T) {
	const revision = "f9575f01aabbccddeeff00112233445566778899"
	vcs := []debug.BuildSetting{{Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: "false"}}
	dirty := []debug.BuildSetting{{Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: "true"}}
	for _, tt := range []struct {
		name, module string
		settings     []debug.BuildSetting
		want         string
	}{
		{name: "without a clone", module: "(devel)", want: "1.2.0-dev"},
		{name: "a test", want: "1.2.0-dev"},
		{name: "in a clone", module: "v0.0.0-20261128040635-f9575f01aabb", settings: vcs, want: "1.2.0-dev+f9575f01aabb"},
		{name: "behind a tag", module: "v1.1.1-0.20261128040635-f9575f01aabb", settings: vcs, want: "1.2.0-dev+f9575f01aabb"},
		{name: "with changes", module: "v0.0.0-20261128040635-f9575f01aabb+dirty", settings: dirty,
			want: "1.2.0-dev+f9575f01aabb.modified"},
		{name: "go install of a commit", module: "v0.0.0-20261128040635-f9575f01aabb", want: "1.2.0-dev+f9575f01aabb"},
		{name: "of a tag", module: "v1.2.0", settings: vcs, want: "1.2.0"},
		{name: "of a candidate", module: "v1.2.0-rc.1", want: "1.2.0-rc.1"},
		{name: "of a tag, with changes", module: "v1.2.0+dirty", settings: dirty, want: "1.2.0+dirty"},
	} {
		v := Info{Version: "1.2.0-dev"}
		v.read(&debug.BuildInfo{Main: debug.Module{Version: tt.module}, Settings: tt.settings})
		if v.Version != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, v.Version, tt.want)
		}
	}
}
