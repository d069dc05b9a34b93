package bpf

import (
	"errors"
	"reflect"
	"testing"

	"symbolize/fixtures/bpfbuild"
	"symbolize/ingest/decode"
)

// metadataBody builds the body of a BPF_METADATA record.
func metadataBody(big bool, n uint64, values ...string) []byte {
	field := func(s string, n int) []byte { return append([]byte(s), make([]byte, n-len(s))...) }
	b := field("bpf_prog_0123456789abcdef_p", 512)
	b = bpfbuild.OrderOf(big).AppendUint64(b, n)
	for i := 0; i < len(values); i += 2 {
		b = append(b, field(values[i], 64)...)
		b = append(b, field(values[i+1], 256)...)
	}
	return b
}

func TestDecodeMetadata(t *testing.T) {
	for _, big := range []bool{false, true} {
		body := metadataBody(big, 2, "version", "7", "by", "someone")
		m, err := DecodeMetadata("test", body, 0, big)
		want := Metadata{"bpf_prog_0123456789abcdef_p", []MetadataValue{{"version", "7"},
			{"by", "someone"}}}
		if err != nil || !reflect.DeepEqual(m, want) {
			t.Errorf("%+v, %v", m, err)
		}
		for n := range body {
			m, err := DecodeMetadata("test", body[:n:n], 0x40, big)
			var where *decode.Error
			if !errors.As(err, &where) || where.Offset > int64(0x40+n) || len(m.Values) >= 2 {
				t.Fatalf("%d bytes: %+v, %v", n, m, err)
			}
		}
	}
	body := metadataBody(false, ^uint64(0), "a", "b")
	if m, err := DecodeMetadata("test", body, 0, false); err == nil || len(m.Values) != 1 {
		t.Errorf("a count that lies: %+v, %v", m, err)
	}
}
