package bpf

import (
	"testing"

	"symbolize/buildid"
)

// TestSameName: the kernel keeps 15 characters of a name, so that only longer names can
// differ in the rest.
func TestSameName(t *testing.T) {
	const full, cut = "count_system_calls", "count_system_ca"
	for names, want := range map[[2]string]bool{
		{full, cut}: true, {full, full}: true, {cut, cut}: true, {"f", "f"}: true, {"", ""}: true,
		{full, cut[:14]}: false, {full, "count_system_cb"}: false, {"f", "fg"}: false,
		{full, "count_system_calls_on"}: false, {"", "f"}: false,
	} {
		if SameName(names[0], names[1]) != want || SameName(names[1], names[0]) != want {
			t.Errorf("%q: not %v both ways", names, want)
		}
	}
}

// TestAliases: aliases of a function differ from identities of others, and a truncated name matches
// the whole one.
func TestAliases(t *testing.T) {
	const full = "count_system_calls"
	seen := make(map[buildid.ID]string)
	for name, id := range map[string]buildid.ID{
		"tag": TagIdentity(Tag{1}), "another tag": TagIdentity(Tag{2}),
		"count":                  CountIdentity(full, 9),
		"another count":          CountIdentity(full, 10),
		"another name":           CountIdentity("f", 9),
		"symbol":                 SymbolIdentity("x86_64", "bpf_prog_0100000000000000", 0),
		"symbol with its length": SymbolIdentity("x86_64", "bpf_prog_0100000000000000", 9),
	} {
		if other := seen[id]; other != "" || id.Space() != buildid.JIT {
			t.Errorf("%s is %s, which is %s, too", name, id, other)
		}
		seen[id] = name
	}
	if CountIdentity(full, 9) != CountIdentity(full[:15], 9) {
		t.Error("a cut name is another one")
	}
}
