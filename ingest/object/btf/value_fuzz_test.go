package btf

import (
	"encoding/json"
	"errors"
	"io"
	"testing"
)

// fuzzOutput bounds the printed text of a random value.
const fuzzOutput = 8 << 10

// FuzzValue prints random data by random types. The output is bounded, valid JSON with and
// without an error, and has no null without one.
func FuzzValue(f *testing.F) {
	f.Add(kinds(f).Raw(), uint32(11), []byte("0123456789abcdef"))
	for _, big := range []bool{false, true} {
		types, id := valueTypes(f, big)
		for _, name := range []string{"fields", "holder", "data", "f128", "grid", "text"} {
			f.Add(types.Raw(), uint32(id[name]), []byte("abcdefgh\x00\xff234567"))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, id uint32, data []byte) {
		types, err := Parse("fuzz", raw, nil)
		if err != nil {
			return
		}
		for _, asJSON := range []bool{true, false} {
			o := &ValueOptions{JSON: asJSON, MaxBytes: fuzzOutput}
			b, _ := types.AppendValue(nil, ID(id), data, o)
			if asJSON && !json.Valid(b) {
				t.Errorf("type %d: %s", id, b)
			}
			// One value more than the limit: a text of its length escaped, and brackets.
			if len(b) > 8*fuzzOutput+maxString*6+maxNesting*1024 {
				t.Errorf("type %d: %d bytes", id, len(b))
			}
		}
	})
}

// FuzzC prints random types as C.
func FuzzC(f *testing.F) {
	f.Add(kinds(f).Raw())
	for _, big := range []bool{false, true} {
		raw, _ := everyKind(big)
		f.Add(raw)
		types, _ := valueTypes(f, big)
		f.Add(types.Raw())
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		types, err := Parse("fuzz", raw, nil)
		if err != nil {
			return
		}
		var b []byte
		for id := range ID(min(types.Len(), 64)) {
			b, _ = types.AppendC(b[:0], id, nil)
			if len(b) > maxC {
				t.Errorf("type %d: %d bytes", id, len(b))
			}
		}
		if err := types.WriteC(io.Discard, nil, nil); err != nil && !errors.Is(err, ErrLongC) &&
			!errors.Is(err, errNested) && !errors.Is(err, errEndless) {
			t.Error(err)
		}
	})
}
