//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"symbolize/fixtures/must"
)

// liveMaps are the maps of fixtures/maps/kinds.bpf.o, loaded and pinned.
type liveMaps struct {
	pins, object string
}

// loadKinds loads the object and pins its maps.
func loadKinds(t *testing.T) *liveMaps {
	t.Helper()
	object, err := filepath.Abs("../../fixtures/maps/kinds.bpf.o")
	if err != nil {
		t.Fatal(err)
	}
	l := &liveMaps{pins: fmt.Sprintf("/sys/fs/bpf/symbolize_kinds_%d", os.Getpid()), object: object}
	if err := os.Mkdir(l.pins, 0o700); err != nil {
		t.Skipf("SKIPPED: no BPF file system: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(l.pins); err != nil {
			t.Error(err)
		}
	})
	command(t, ".", "bpftool", "prog", "loadall", object, l.pins, "type", "socket", "pinmaps", l.pins)
	return l
}

// show is the output of `bpftool map show` for a map.
func (l *liveMaps) show(t *testing.T, name string) (m struct {
	ID    uint32 `json:"id"`
	Value int    `json:"bytes_value"`
}) {
	t.Helper()
	out := command(t, ".", "bpftool", "-j", "map", "show", "pinned", filepath.Join(l.pins, name))
	if err := json.Unmarshal([]byte(out), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// put stores a pair.
func (l *liveMaps) put(t *testing.T, name string, key, value []byte) {
	t.Helper()
	args := []string{"map", "update", "pinned", filepath.Join(l.pins, name), "key", "hex"}
	args = append(args, strings.Fields(fmt.Sprintf("% x", key))...)
	args = append(append(args, "value", "hex"), strings.Fields(fmt.Sprintf("% x", value))...)
	command(t, ".", "bpftool", args...)
}

// touch runs the program on each CPU, which leaves another value there.
func (l *liveMaps) touch(t *testing.T) {
	t.Helper()
	packet := filepath.Join(t.TempDir(), "packet")
	must.Write(t, packet, make([]byte, 64))
	for cpu := range runtime.NumCPU() {
		command(t, ".", "taskset", "-c", strconv.Itoa(cpu), "bpftool", "prog", "run", "pinned",
			filepath.Join(l.pins, "touch"), "data_in", packet, "data_out", "-")
	}
}

// span is where text is in a key or value: bytes from the first to before the last.
type span [2]int

// randomBytes has runs of zeros and of ones in it. Text is letters followed by zeros, at least one:
// bpftool recognizes nothing else as text.
func randomBytes(r *rand.Rand, n int, texts []span) []byte {
	b := make([]byte, n)
	for i := range b {
		switch k := r.IntN(8); {
		case k == 0:
			b[i] = 0xff
		case k > 1:
			b[i] = byte(r.Uint32())
		}
	}
	for _, text := range texts {
		clear(b[text[0]:text[1]])
		for i := range r.IntN(text[1] - text[0]) {
			b[text[0]+i] = 'a' + byte(r.IntN(26))
		}
	}
	return b
}

// keep normalizes the value as bpftool prints it.
func keep(text string) string { return text }

// bitField is how bpftool 7.1 prints one: its bits, without sign, bool and names.
var bitField = regexp.MustCompile(`"([a-h])": 0x([0-9a-f]+)`)

// bitFields puts the bit fields of struct bits into a dump of bpftool.
func bitFields(text string) string {
	widths := map[string]uint{"c": 5, "f": 33, "h": 4} // of the fields with a sign
	colors := map[int64]string{0: `"RED"`, 7: `"GREEN"`, -3: `"BLUE"`}
	return bitField.ReplaceAllStringFunc(text, func(field string) string {
		m := bitField.FindStringSubmatch(field)
		bits, err := strconv.ParseUint(m[2], 16, 64)
		if err != nil {
			return field
		}
		v := int64(bits)
		if n := widths[m[1]]; n > 0 {
			v = v << (64 - n) >> (64 - n)
		}
		out := strconv.FormatInt(v, 10)
		switch {
		case m[1] == "g":
			out = strconv.FormatBool(v != 0)
		case m[1] == "h" && colors[v] != "":
			out = colors[v]
		}
		return fmt.Sprintf("%q: %s", m[1], out)
	})
}

// bigEnum is a value of an enum of 64 bits, which bpftool prints as if it had a sign.
var bigEnum = regexp.MustCompile(`"big": (-[0-9]+)`)

// unsigned puts the values of enum big into a dump of bpftool.
func unsigned(text string) string {
	return bigEnum.ReplaceAllStringFunc(text, func(field string) string {
		v, err := strconv.ParseInt(bigEnum.FindStringSubmatch(field)[1], 10, 64)
		if err != nil {
			return field
		}
		return fmt.Sprintf(`"big": %d`, uint64(v))
	})
}

// TestLiveMapAsBpftool compares the texts of maps of every kind of type with the bpftool that is
// installed, of new maps and filled with random bytes: of its dump, by the types of the object and
// as bytes, and of the dumps of `capture --maps`, by the types that it saved. Floats are not among
// them: bpftool 7.1 prints none, and no member after one (TestValueAsBpftool of package btf has
// them).
func TestLiveMapAsBpftool(t *testing.T) {
	needLive(t, "bpftool", "taskset")
	t.Run("new", func(t *testing.T) {
		l := loadKinds(t)
		data := l.capture(t)
		for _, c := range liveKinds {
			l.compare(t, &c, data)
		}
	})
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l := loadKinds(t)
			r := rand.New(rand.NewPCG(seed, 1))
			for _, c := range liveKinds {
				l.fill(t, r, &c)
			}
			l.touch(t)
			data := l.capture(t)
			for _, c := range liveKinds {
				l.compare(t, &c, data)
			}
		})
	}
}

// fill puts random bytes into a map.
func (l *liveMaps) fill(t *testing.T, r *rand.Rand, c *liveKind) {
	t.Helper()
	size := l.show(t, c.name).Value
	for entry := range c.entries {
		key := []byte{byte(entry), 0, 0, 0} // of an array
		if c.key > 0 {
			key = randomBytes(r, c.key, c.keyText)
		}
		l.put(t, c.name, key, randomBytes(r, size, c.text))
	}
}

// liveKind is a map of the object, and its content.
type liveKind struct {
	name          string
	entries       int
	key           int // bytes; 0 for an array
	keyText, text []span
	bare          bool                // without BTF
	right         func(string) string // corrects the output of bpftool
}

var liveKinds = []liveKind{
	{name: "ints", entries: 2, right: keep},
	{name: "wide", entries: 2, right: keep},
	{name: "bits", entries: 2, right: bitFields},
	{name: "nested", entries: 2, text: []span{{44, 60}, {60, 64}}, right: unsigned},
	{name: "packed", entries: 1, right: keep},
	{name: "refs", entries: 1, right: keep},
	{name: "nodes", entries: 1, right: keep},
	{name: "arrays", entries: 1, right: keep},
	{name: "a_rather_long_name_of_a_map", entries: 1, right: keep},
	{name: "per_cpu", entries: 2, right: keep},
	{name: "plain_ints", entries: 4, key: 8, right: keep},
	{name: "per_cpu_hash", entries: 3, key: 16, keyText: []span{{8, 16}}, right: keep},
	{name: "numbers", entries: 4, key: 16, keyText: []span{{8, 16}}, right: keep},
	{name: "bare", entries: 4, key: 4, bare: true, right: keep},
	{name: "bare_long", entries: 4, key: 20, bare: true, right: keep},
	{name: "bare_cpu", entries: 3, key: 4, bare: true, right: keep},
}

// capture dumps maps into a bundle.
func (l *liveMaps) capture(t *testing.T) string {
	t.Helper()
	ids := make([]string, 0, len(liveKinds))
	for _, c := range liveKinds {
		ids = append(ids, fmt.Sprint(l.show(t, c.name).ID))
	}
	data := filepath.Join(t.TempDir(), "maps.data")
	code, _, said := runLive(t, "capture", "-o", data, "--maps", strings.Join(ids, ","), "--", "true")
	if code != 0 {
		t.Fatalf("capture: status %d\n%s", code, said)
	}
	return data
}

// compare prints a map in each way, and wants each to be as bpftool's text.
func (l *liveMaps) compare(t *testing.T, c *liveKind, data string) {
	t.Helper()
	pin := filepath.Join(l.pins, c.name)
	dump := func(name string, flags ...string) (path, text string) {
		text = command(t, ".", "bpftool", append(flags, "map", "dump", "pinned", pin)...)
		path = filepath.Join(t.TempDir(), name)
		must.Write(t, path, []byte(text))
		return path, text
	}
	plain, text := dump("dump.txt")
	compact, _ := dump("dump.json", "-j")
	spaced, _ := dump("dump.pretty", "-p")
	id := fmt.Sprint(l.show(t, c.name).ID)
	ways := [][]string{
		{"--btf", l.object, "--map", c.name, compact},
		{"--btf", l.object, "--map", c.name, spaced},
		{"--map", id, data},
	}
	if c.bare {
		ways = [][]string{{plain}, {compact}, {spaced}, {"--map", id, data}}
	}
	want := c.right(text)
	for _, way := range ways {
		code, out, said := runLive(t, append([]string{"map"}, way...)...)
		if code != 0 || out != want {
			t.Errorf("%s: map %v: status %d, %s\n%s", c.name, way, code, said, firstChange(out, want))
		}
		code, out, said = runLive(t, append([]string{"map", "--format", "json"}, way...)...)
		if code != 0 || !json.Valid([]byte(out)) {
			t.Errorf("%s: map --format json %v: status %d, %s\n%s", c.name, way, code, said, out)
		}
	}
}

// firstChange shows where two texts differ.
func firstChange(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	i := 0
	for i < min(len(g), len(w))-1 && g[i] == w[i] {
		i++
	}
	return fmt.Sprintf("line %d: %q, and not, as bpftool, %q", i+1, g[i], w[i])
}
