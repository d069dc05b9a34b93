package ingest_test

import (
	"testing"

	"symbolize/buildid"
	"symbolize/ingest"
	"symbolize/ingest/addr"
)

func TestUnresolvedText(t *testing.T) {
	id := buildid.New([]byte{0xab, 0xcd})
	for _, tt := range []struct {
		object ingest.Object
		offset addr.Offset
		want   string
	}{
		{object: ingest.Object{File: ingest.FileRef{Path: "/usr/lib/libc.so.6"}}, offset: 0x27220,
			want: "[libc.so.6+0x27220]"},
		{object: ingest.Object{File: ingest.FileRef{Path: "relative"}}, want: "[relative+0x0]"},
		{object: ingest.Object{File: ingest.FileRef{Path: "/dir/"}}, offset: 1,
			want: "[/dir/+0x1]"},
		{object: ingest.Object{Kind: ingest.Kernel, File: ingest.FileRef{Path: "[kernel.kallsyms]"}},
			offset: ^addr.Offset(0),
			want:   "[kernel.kallsyms+0xffffffffffffffff]"},
		{object: ingest.Object{ID: id}, offset: 0x1f, want: "[buildid:abcd+0x1f]"},
		{object: ingest.Object{}, offset: 2, want: "[unknown+0x2]"},
		{object: ingest.Object{File: ingest.FileRef{Path: "/x\x1b\n"}}, offset: 2,
			want: "[x??+0x2]"},
		{object: ingest.Object{Kind: ingest.Anonymous, File: ingest.FileRef{Path: "//anon"}},
			want: "[anon]"},
		{object: ingest.Object{Kind: ingest.Anonymous}, want: "[anon]"},
		{object: ingest.Object{Kind: ingest.Unmapped,
			File: ingest.FileRef{Path: ingest.UnmappedKernelPath}},
			want: "[unmapped kernel]"},
		{object: ingest.Object{Kind: ingest.Unmapped}, want: "[unmapped]"},
		{object: ingest.Object{Kind: ingest.Guest}, want: "[guest]"},
		{object: ingest.Object{Kind: ingest.Hypervisor}, want: "[hypervisor]"},
		{object: ingest.Object{Kind: ingest.NoStack}, want: "[no stack]"},
	} {
		if got := string(ingest.AppendUnresolved([]byte("x"), &tt.object,
			tt.offset)); got != "x"+tt.want {
			t.Errorf("got %s, want x%s", got, tt.want)
		}
	}
}
