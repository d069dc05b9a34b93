package input

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/perfbuild"
	"symbolize/ingest"
)

const dockerID = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// containedCapture has samples of control groups, namespaces, CPUs and times.
func containedCapture(big bool) capture {
	b := perfbuild.NewOrder(big)
	b.Events[0].SampleType |= perfbuild.Cgroup | perfbuild.CPU
	b.Events[0].Flags |= perfbuild.Namespaces
	c := capture{b}
	c.lib(7, 0x400000, 0x100000, 0, "/bin/x", 0)
	c.Cgroup(5, "/system.slice/docker-"+dockerID+".scope/init", at(0))
	c.Cgroup(6, "/", at(0))
	links := func(net uint64) [][2]uint64 { return [][2]uint64{{4, net}, {4, 11}, {4, 12}, {4, 13}} }
	c.Namespaces(7, 7, links(100), at(0))
	c.Namespaces(7, 7, links(300), at(3e9)) // later in time, earlier in the file
	c.Namespaces(7, 7, links(200), at(2e9))
	for i, cgroup := range []uint64{5, 6, 5, 99, 0} {
		c.Sample(perfbuild.Sample{PID: 7, TID: 7 + int32(i)/4, Time: uint64(i)*1e9 + 1, CPU: uint32(i) % 3,
			Cgroup: cgroup, Chain: []uint64{cU, 0x400010}})
	}
	return c
}

// tagLines is a profile in words, a line for each combination of tags.
func tagLines(p *ingest.Profile) []string {
	counts := make(map[string]uint64)
	for i := range p.Samples {
		var list []string
		for tag := range p.AllTags(&p.Samples[i]) {
			list = append(list, tag.Key+"="+tag.Value())
		}
		counts[strings.Join(list, " ")] += p.Samples[i].Count
	}
	var out []string
	for text, n := range counts {
		out = append(out, fmt.Sprintf("%s %d", text, n))
	}
	slices.Sort(out)
	return out
}

func TestTags(t *testing.T) {
	for _, tc := range []struct {
		tags string
		want []string
	}{
		{tags: "cgroup", want: []string{" 1", "cgroup=/ 1",
			"cgroup=/system.slice/docker-" + dockerID + ".scope/init 2", "cgroup=cgroup 99 1"}},
		{tags: "container", want: []string{" 3", "container=" + dockerID + " 2"}},
		{tags: "netns", want: []string{" 1", "netns=100 2", "netns=200 1", "netns=300 1"}},
		{tags: "pidns,netns", want: []string{" 1", "pidns=13 netns=100 2", "pidns=13 netns=200 1",
			"pidns=13 netns=300 1"}},
		{tags: "mntns", want: []string{" 5"}},
		{tags: "time:2s", want: []string{"time=0 2", "time=2 2", "time=4 1"}},
		{tags: "time:2500ms", want: []string{"time=0.0 3", "time=2.5 2"}},
		{tags: "", want: []string{" 5"}},
	} {
		for _, big := range []bool{false, true} {
			p := fold(t, containedCapture(big).Bytes(), Options{Selection: Selection{Keep: ingest.Keep{Tags: tc.tags}}})
			if got := tagLines(p); !slices.Equal(got, tc.want) {
				t.Errorf("%s, big endian %t: %q, want %q", tc.tags, big, got, tc.want)
			}
		}
	}
}

// TestMemory has samples of loads: the level that served them, and the cycles that they took.
func TestMemory(t *testing.T) {
	for _, big := range []bool{false, true} {
		for _, c := range []struct {
			name   string
			field  uint64
			weight uint64 // of all samples
		}{
			{name: "WEIGHT", field: perfbuild.Weight, weight: 7<<32 + 4 + 300 + 9},
			{name: "WEIGHT_STRUCT", field: perfbuild.WeightStruct, weight: 4 + 300 + 9},
		} {
			b := perfbuild.NewOrder(big)
			b.Events[0].SampleType |= perfbuild.DataSrc | c.field
			cap := capture{b}
			cap.lib(7, 0x400000, 0x100000, 0, "/bin/x", 0)
			for i, x := range []struct{ src, weight uint64 }{
				{0x1<<33 | 0xa<<5, 7<<32 | 4}, {0xd<<33 | 0x2<<5, 300}, {0x1<<33 | 0xa<<5 | 1<<24, 9}, {0, 0}} {
				cap.Sample(perfbuild.Sample{PID: 7, Time: uint64(i + 1), DataSrc: x.src, Weight: x.weight, Chain: []uint64{cU, 0x400010}})
			}
			p := fold(t, cap.Bytes(), Options{Selection: Selection{Weight: ingest.LatencyWeight, Keep: ingest.Keep{Tags: "mem"}}})
			if got, want := tagLines(p), []string{" 1", "mem=L1 hit 2", "mem=RAM hit 1"}; !slices.Equal(got, want) {
				t.Errorf("%s, big endian %t: %q, want %q", c.name, big, got, want)
			}
			if sum := p.Stats.Weight; sum != c.weight {
				t.Errorf("%s, big endian %t: weight %d, want %d", c.name, big, sum, c.weight)
			}
		}
	}
}

// TestTagsNotRecorded: the error names the option that would have recorded them.
func TestTagsNotRecorded(t *testing.T) {
	for tag, hint := range map[string]string{"cgroup": "--all-cgroups", "netns": "--namespaces",
		"container": "--all-cgroups", "time:1s": "--timestamp", "mem": "perf mem record"} {
		c := newCapture()
		if tag == "time:1s" {
			c.Events[0].SampleType &^= perfbuild.Time
		}
		c.hit(7, 1, cU, 0x400010)
		cp, err := openBytes(t, c.Bytes(), Options{Selection: Selection{Keep: ingest.Keep{Tags: tag}}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = cp.Profile(t.Context())
		if err == nil || !strings.Contains(hintText(err), hint) {
			t.Errorf("%s: %v, hint %q", tag, err, hintText(err))
		}
	}
}

func TestThreadsAndCPUs(t *testing.T) {
	for _, tc := range []struct {
		name    string
		opts    Options
		samples uint64
	}{
		{name: "a thread", opts: Options{Selection: Selection{TIDs: []int32{8}}}, samples: 1},
		{name: "CPUs", opts: Options{Selection: Selection{CPUs: []int32{0, 2}}}, samples: 3},
		{name: "both", opts: Options{Selection: Selection{TIDs: []int32{7, 8}, CPUs: []int32{0}}}, samples: 2},
		{name: "none", opts: Options{Selection: Selection{CPUs: []int32{5}}}, samples: 0},
	} {
		p := fold(t, containedCapture(false).Bytes(), tc.opts)
		if p.Stats.Samples != tc.samples || p.Stats.FilteredOut != 5-tc.samples {
			t.Errorf("%s: %d samples, %d left out; want %d", tc.name, p.Stats.Samples,
				p.Stats.FilteredOut, tc.samples)
		}
	}
	c := newCapture()
	c.hit(7, 1, cU, 0x400010)
	cp, err := openBytes(t, c.Bytes(), Options{Selection: Selection{CPUs: []int32{0}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cp.Profile(t.Context()); err == nil ||
		!strings.Contains(hintText(err), "--sample-cpu") {
		t.Errorf("samples without a CPU: %v", err)
	}
}

func TestContainerIDs(t *testing.T) {
	const task = "0123456789abcdef0123456789abcdef"
	for path, want := range map[string]string{
		"/docker/" + dockerID: dockerID,
		"/kubepods.slice/kubepods-besteffort.slice/cri-containerd-" + dockerID + ".scope": dockerID,
		"/machine.slice/libpod-" + dockerID + ".scope/container":                          dockerID,
		"/kubepods/pod12/" + dockerID + "/" + strings.Repeat("ab", 32):                    strings.Repeat("ab", 32),
		"/ecs/" + task + "/" + task + "-1234567890":                                       task + "-1234567890",
		"/user.slice/user-1000.slice":                                                     "",
		"/x/" + dockerID + "0":                                                            "",
		"":                                                                                "",
	} {
		c := containedCapture(false)
		c.Cgroup(50, path, at(0))
		c.Sample(perfbuild.Sample{PID: 7, Time: 9, Cgroup: 50, Chain: []uint64{cU, 0x400010}})
		p := fold(t, c.Bytes(), Options{Selection: Selection{Keep: ingest.Keep{Tags: "container"}, Time: exactly(9)}})
		if got := p.Tag(&p.Samples[0], "container"); got != want {
			t.Errorf("%s: container %q, want %q", path, got, want)
		}
	}
}

// hintText is the hint of an error, "" if it has none.
func hintText(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

// exactly is the range of one time.
func exactly(t uint64) TimeRange { return TimeRange{set: true, From: t, To: t} }
