package bpf

import "testing"

// TestParseTag reads a tag in the forms in which lists print it.
func TestParseTag(t *testing.T) {
	const want = "91621db7a64bdc62"
	for text, ok := range map[string]bool{
		want: true, "91621DB7A64BDC62": true, "tag:" + want: true,
		"bpf_prog_" + want: true, "bpf_prog_" + want + "_name": true,
		"": false, "tag:": false, want[1:]: false, want + "0": false, "g" + want[1:]: false,
		"bpf_prog_" + want + "name": false, "jit:" + want: false,
	} {
		got, is := ParseTag(text)
		if is != ok || ok && got.String() != want {
			t.Errorf("%q: %s, %v", text, got, is)
		}
	}
}
