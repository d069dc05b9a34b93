package input

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"symbolize/fixtures/bundlebuild"
	"symbolize/fixtures/must"
	"symbolize/ingest/format/bundle"
	"symbolize/ingest/format/rawdump"
	"symbolize/ingest/format/stackmap"
)

// numberDump makes the raw dump of a hash map, or of another type, from numbers of 4 bytes to counts.
func numberDump(t *testing.T, kind uint32, pairs ...[2]byte) []byte {
	t.Helper()
	var list [][2][]byte
	for _, p := range pairs {
		list = append(list, [2][]byte{{p[0], 0, 0, 0}, {p[1], 0, 0, 0, 0, 0, 0, 0}})
	}
	b, err := rawdump.Append(nil, rawdump.Header{Type: kind, KeySize: 4, ValueSize: 8}, list)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBundleCounts: the hash map with IDs of stacks as keys counts the stacks of a bundle, and the
// dump that an option names counts them in its place.
func TestBundleCounts(t *testing.T) {
	const hash, array, id = 1, 2, "abcdefghijklmnopqrst"
	stacks := stackDump(t, [][]byte{stackRecord(1, id, 0x100)}, [][]byte{stackRecord(1, id, 0x200)})
	counts := numberDump(t, hash, [2]byte{0, 70}, [2]byte{1, 30})
	given := filepath.Join(t.TempDir(), "given")
	must.Write(t, given, numberDump(t, hash, [2]byte{0, 7}, [2]byte{1, 3}))
	for _, c := range []struct {
		name string
		maps map[string][]byte
		opts StackOptions
		want []string
	}{
		{name: "none", want: []string{"1 1", "1 1"}},
		{name: "by its keys", maps: map[string][]byte{"hist": counts}, want: []string{"30 30", "70 70"}},
		{name: "of two the one with IDs of stacks",
			maps: map[string][]byte{"hist": counts, "a": numberDump(t, hash, [2]byte{9, 1}, [2]byte{1, 9}),
				"b": numberDump(t, array, [2]byte{0, 1}, [2]byte{1, 9})}, want: []string{"30 30", "70 70"}},
		{name: "the map named counts", maps: map[string][]byte{"hist": counts,
			"counts": numberDump(t, hash, [2]byte{0, 50})}, want: []string{"50 50"}},
		{name: "a file", maps: map[string][]byte{"hist": counts}, opts: StackOptions{Counts: given},
			want: []string{"3 3", "7 7"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := bundlebuild.NewHost()
			h.Entries = map[string][]byte{bundle.DumpName("stacks"): stacks}
			for name, dump := range c.maps {
				h.Entries[bundle.DumpName(name)] = dump
			}
			path := filepath.Join(t.TempDir(), "capture.data")
			must.Write(t, path, h.Bundle())
			_, p := foldPath(t, path, Options{Stacks: c.opts})
			var got []string
			for _, line := range dump(p) {
				f := strings.Fields(line)
				got = append(got, strings.Join(f[len(f)-2:], " "))
			}
			if slices.Sort(got); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestStackFlags: an option of stack maps is an error for a capture that is none, and where the file
// that it names is not there.
func TestStackFlags(t *testing.T) {
	alone, stacks := filepath.Join(t.TempDir(), "alone"), filepath.Join(t.TempDir(), "stacks")
	h := bundlebuild.NewHost()
	must.Write(t, alone, h.Bundle())
	h.Entries = map[string][]byte{bundle.DumpName("stacks"): stackDump(t,
		[][]byte{stackRecord(1, "abcdefghijklmnopqrst", 0x100)})}
	must.Write(t, stacks, h.Bundle())
	options := map[string]StackOptions{
		"--counts": {Counts: "absent"}, "--btf": {BTF: "absent"}, "--kernel-stacks": {Kernel: "absent"},
		"--key": {Key: []stackmap.Field{{Size: 4}}}, "--value": {Value: &stackmap.Field{Size: 8}},
		"--depth": {Depth: 4}, "--maps": {Maps: map[int32]string{1: "absent"}},
	}
	for flag, o := range options {
		for path, want := range map[string]string{
			"../../fixtures/captures/fixed.data": flag + " is for dumps of stack maps: it is a perf.data file",
			alone:                                flag + " is for dumps of stack maps: the bundle has none",
			stacks:                               "absent: no such file",
		} {
			if path == stacks &&
				!slices.Contains([]string{"--counts", "--btf", "--kernel-stacks", "--maps"}, flag) {
				continue
			}
			c, err := Open(t.Context(), path, Options{Stacks: o})
			if err == nil {
				if _, err = c.Profile(t.Context()); err == nil {
					err = c.CheckStackOptions()
				}
				c.Close()
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s: %v", path, flag, err)
			}
		}
	}
}
