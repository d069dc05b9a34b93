package otlp

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"symbolize/ingest"
)

// readNamed reads a message, and names the place of its program as resolve does.
func readNamed(t *testing.T, data []byte) *ingest.Profile {
	t.Helper()
	p := mustRead(t, data, allLabels)
	for l, loc := range p.Locations {
		if p.Objects[loc.Object].File.Path == "prog" { // as resolve does
			names := *p.Names
			names.Functions = append(slices.Clone(names.Functions), ingest.Function{Object: loc.Object,
				SystemName: "_ZN4shop4sellEv", File: "/src/shop.cc", StartLine: 3},
				ingest.Function{Object: loc.Object, SystemName: "main", File: "/src/shop.cc"})
			n := ingest.FuncID(len(names.Functions))
			at := names.FrameEnds[l]
			names.Frames = slices.Insert(slices.Clone(names.Frames), int(at),
				ingest.Frame{Func: n - 2, Line: 5, Inlined: true}, ingest.Frame{Func: n - 1, Line: 9, Column: 2})
			names.FrameEnds = slices.Clone(names.FrameEnds)
			for k := l; k < len(names.FrameEnds); k++ {
				names.FrameEnds[k] += 2
			}
			names.Reasons = slices.Clone(names.Reasons)
			names.Reasons[l] = ingest.ReasonNone
			p.Names = &names
			return p
		}
	}
	t.Fatal("no native frame")
	return nil
}

func rewritten(t *testing.T, p *ingest.Profile, opts WriteOptions, inputs ...[]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	r := NewRewriter(&out, p, opts)
	for _, in := range inputs {
		if err := r.File("in.otlp", bytes.NewReader(in), int64(len(in)), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestRewrite: a file gains names, and nothing else changes; with nothing to name its bytes are the
// same. JSON and former versions become the same messages.
func TestRewrite(t *testing.T) {
	one := proto(t, small)
	former := asFormer(t, one, map[uint64]uint64{2: 3, 3: 4, 4: 2}, false)
	unresolved := mustRead(t, one, allLabels)
	for name, in := range map[string][]byte{"protobuf": one, "length": delimited(one, one)} {
		if got := rewritten(t, unresolved, WriteOptions{}, in); !bytes.Equal(got, in) {
			t.Errorf("%s: nothing to name, and the bytes differ", name)
		}
	}
	demangle := func(s string) string { return strings.ReplaceAll(s, "_ZN4shop4sellEv", "shop::sell()") }
	want := rewritten(t, readNamed(t, one), WriteOptions{Demangle: demangle}, one)
	for name, in := range map[string][]byte{"JSON": []byte(small), "1.9": former, "zstd": delimited(packed(one))} {
		p := readNamed(t, in)
		if got := rewritten(t, p, WriteOptions{Demangle: demangle}, in); !bytes.Equal(got, want) {
			t.Errorf("%s: other bytes", name)
		}
	}
	named := slices.Clone(smallDump)
	for i := range named {
		named[i] = strings.ReplaceAll(named[i], "prog+0x1100",
			"prog+0x1100=_ZN4shop4sellEv /src/shop.cc:3:5:0=main /src/shop.cc:0:9:2")
	}
	p := mustRead(t, want, allLabels)
	equal(t, dump(p), named)
	allTrue := []string{"filenames", "functions", "inline_frames", "line_numbers"}
	if got := factsOf(t, want, 1); !slices.Equal(got, allTrue) || len(factsOf(t, want, 2)) > 0 {
		t.Errorf("facts of the mappings: %v, %v", got, factsOf(t, want, 2))
	}
	// a fact that was false
	unnamed := proto(t, strings.NewReplacer(`"attributeIndices":[3]`, `"attributeIndices":[8,3]`,
		`"kernel","cpython"]`, `"kernel","cpython","pprof.mapping.has_functions"]`,
		`{"keyStrindex":20,"value":{"stringValue":"cpython"}}]`,
		`{"keyStrindex":20,"value":{"stringValue":"cpython"}},{"keyStrindex":24,"value":{"boolValue":false}}]`).Replace(small))
	if got := factsOf(t, unnamed, 1); got != nil {
		t.Errorf("facts %v", got)
	}
	if got := factsOf(t, rewritten(t, readNamed(t, unnamed), WriteOptions{}, unnamed), 1); !slices.Equal(got, allTrue) {
		t.Errorf("facts that replace others: %v", got)
	}
	if again := rewritten(t, p, WriteOptions{}, want); !bytes.Equal(again, want) {
		t.Error("a named file is no fixed point")
	}
	line := rewritten(t, readNamed(t, one), WriteOptions{Demangle: demangle, JSON: true}, one, one)
	if n := bytes.Count(line, []byte("\n")); n != 2 || !bytes.Contains(line, []byte(`"shop::sell()"`)) {
		t.Errorf("JSON of %d lines: %s", n, line)
	}
	equal(t, dump(mustRead(t, line[:len(line)/2], allLabels)), named)
	if twice := rewritten(t, readNamed(t, one), WriteOptions{Demangle: demangle}, one, one); !bytes.Equal(twice,
		delimited(want, want)) {
		t.Error("two files are not two messages")
	}
}

// factsOf returns the true facts of a mapping, sorted.
func factsOf(t *testing.T, data []byte, mapping uint64) (facts []string) {
	t.Helper()
	r := newReader("in.otlp", Options{})
	err := r.split(data, func() error {
		b, err := r.entry(mappingTable, mapping)
		if err != nil {
			return err
		}
		seen := make(map[string]bool)
		err = r.readMapping(&r.raw, b)
		for _, i := range r.raw.attributes {
			a, _ := r.attribute(i)
			fact, ok := strings.CutPrefix(string(a.key), keyFact)
			if ok && bytes.Equal(a.value, valueTrue) {
				facts = append(facts, fact)
			}
			if seen[fact] {
				t.Errorf("%s twice", a.key)
			}
			seen[fact] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(facts)
	return facts
}

// TestJSONBothWays: JSON keeps all that a message has.
func TestJSONBothWays(t *testing.T) {
	const text = `{"resourceProfiles":[{"resource":{"attributes":[` +
		`{"key":"a","value":{"boolValue":false}},{"key":"b","value":{"intValue":"0"}},` +
		`{"key":"c","value":{"doubleValue":1.5}},{"key":"d","value":{"bytesValue":"AAH/"}},` +
		`{"key":"e","value":{"arrayValue":{"values":[{"stringValue":"x\"\u003c"},{"intValue":"-7"}]}}},` +
		`{"key":"f","value":{"kvlistValue":{"values":[{"key":"k","value":{"stringValue":""}}]}}}],` +
		`"droppedAttributesCount":3},"scopeProfiles":[{"scope":{"name":"n","version":"v"},"profiles":[{` +
		`"sampleType":{"typeStrindex":1},"samples":[{"stackIndex":-1,"attributeIndices":[1,2],"linkIndex":4,` +
		`"values":["-5","9223372036854775807"],"timestampsUnixNano":["18446744073709551615","1"]}],` +
		`"timeUnixNano":"7","durationNano":"18446744073709551615","period":"-1",` +
		`"profileId":"000102030405060708090a0b0c0d0e0f","droppedAttributesCount":1,` +
		`"originalPayloadFormat":"jfr","originalPayload":"//79"}],"schemaUrl":"s"}],"schemaUrl":"u"}],` +
		`"dictionary":{"mappingTable":[{"memoryStart":"18446744073709551615"}],"linkTable":[{"traceId":` +
		`"000102030405060708090a0b0c0d0e0f","spanId":"0001020304050607"}],"stringTable":["","é"]}}`
	got, err := appendJSON(nil, proto(t, text))
	if err != nil || string(got) != text {
		t.Errorf("got  %s, %v\nwant %s", got, err, text)
	}
	base64IDs := strings.NewReplacer("000102030405060708090a0b0c0d0e0f", "AAECAwQFBgcICQoLDA0ODw==",
		"0001020304050607", "AAECAwQFBgc=").Replace(text)
	if !bytes.Equal(proto(t, base64IDs), proto(t, text)) {
		t.Error("IDs in base64")
	}
}
