package otlp

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"symbolize/fixtures/must"
	"symbolize/ingest"
	"symbolize/ingest/files"
	"symbolize/ingest/input/pprof"
	"symbolize/ingest/protobuf"
)

// small is a message with two processes, all kinds of frames and values, in JSON.
const small = `{"resourceProfiles":[
 {"resource":{"attributes":[{"key":"process.pid","value":{"intValue":"7"}},
   {"key":"service.name","value":{"stringValue":"shop"}},{"key":"host.name","value":{"stringValue":"a"}}]},
  "scopeProfiles":[{"scope":{"name":"agent","version":"1"},"profiles":[
   {"sampleType":{"typeStrindex":1,"unitStrindex":2},"periodType":{"typeStrindex":3,"unitStrindex":4},"period":"52",
    "timeUnixNano":"1000000000","durationNano":"5000000000","samples":[
     {"stackIndex":1,"attributeIndices":[1,2],"timestampsUnixNano":["1000000001","2500000000"]},
     {"stackIndex":2,"attributeIndices":[1],"linkIndex":1,"timestampsUnixNano":["3000000000"]}]},
   {"sampleType":{"typeStrindex":5,"unitStrindex":4},"timeUnixNano":"1000000000","durationNano":"5000000000","samples":[
     {"stackIndex":1,"attributeIndices":[1],"values":["30","12"],"timestampsUnixNano":["1000000001","2000000000"]}]}]}]},
 {"resource":{"attributes":[{"key":"process.pid","value":{"intValue":"8"}}]},
  "scopeProfiles":[{"scope":{"name":"agent","version":"1"},"profiles":[
   {"sampleType":{"typeStrindex":6,"unitStrindex":7},"samples":[{"stackIndex":3,"values":["4096"]}]}]}]}],
 "dictionary":{
  "mappingTable":[{},
   {"memoryStart":"4198400","memoryLimit":"4202496","fileOffset":"4096","filenameStrindex":8,"attributeIndices":[3]},
   {"filenameStrindex":9,"attributeIndices":[4]}],
  "locationTable":[{},
   {"mappingIndex":1,"address":"4198656","attributeIndices":[5]},
   {"mappingIndex":2,"address":"64","lines":[{"functionIndex":1}],"attributeIndices":[6]},
   {"lines":[{"functionIndex":2,"line":"12","column":"3"}],"attributeIndices":[7]},
   {"address":"77","attributeIndices":[5]}],
  "functionTable":[{},{"nameStrindex":10},{"nameStrindex":11,"systemNameStrindex":12,"filenameStrindex":13,"startLine":"9"}],
  "linkTable":[{},{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"1112131415161718"}],
  "stringTable":["","samples","count","cpu","nanoseconds","off_cpu","alloc","bytes","prog","vmlinux","do_idle",
   "handle","mod.handle","/app/a.py","thread.name","cpu.logical_number","worker",
   "process.executable.build_id.gnu","00112233445566778899aabbccddeeff00112233","ffeeddccbbaa99887766554433221100ffeeddcc",
   "profile.frame.type","native","kernel","cpython"],
  "attributeTable":[{},{"keyStrindex":14,"value":{"stringValue":"worker"}},{"keyStrindex":15,"value":{"intValue":"3"}},
   {"keyStrindex":17,"value":{"stringValue":"00112233445566778899aabbccddeeff00112233"}},
   {"keyStrindex":17,"value":{"stringValue":"ffeeddccbbaa99887766554433221100ffeeddcc"}},
   {"keyStrindex":20,"value":{"stringValue":"native"}},{"keyStrindex":20,"value":{"stringValueStrindex":22}},
   {"keyStrindex":20,"value":{"stringValue":"cpython"}}],
  "stackTable":[{},{"locationIndices":[1,2]},{"locationIndices":[3,1,4]},{"locationIndices":[1]}]}}`

// smallDump is the profile of small with all labels.
var smallDump = []string{
	"alloc/bytes pid 8 tid -1 cpu -1  [] 4096 4096: prog+0x1100",
	"off_cpu/nanoseconds pid 7 tid -1 cpu -1 worker [host.name=a service.name=shop] 2 42: " +
		"prog+0x1100 [kernel.kallsyms]+0x40=do_idle",
	"samples/count pid 7 tid -1 cpu -1 worker [host.name=a service.name=shop " +
		"span_id=1112131415161718 trace_id=0102030405060708090a0b0c0d0e0f10] 1 1: " +
		"[cpython]=mod.handle /app/a.py:9:12:3 prog+0x1100 +0x0",
	"samples/count pid 7 tid -1 cpu 3 worker [host.name=a service.name=shop] 2 2: " +
		"prog+0x1100 [kernel.kallsyms]+0x40=do_idle",
}

var allLabels = Options{Select: Select{Keep: ingest.Keep{PID: true, TID: true, CPU: true, Tags: "label"}}}

// dump returns the samples of a profile as texts, sorted.
func dump(p *ingest.Profile) (lines []string) {
	for i := range p.Samples {
		s := &p.Samples[i]
		ev := p.Events[s.Event]
		var tags []string
		for t := range p.AllTags(s) {
			tags = append(tags, t.Key+"="+t.Value())
		}
		line := fmt.Sprintf("%s/%s pid %d tid %d cpu %d %s %v %d %d:", ev.Name, ev.Unit, s.PID, s.TID,
			s.CPU, p.Strings[s.Comm], tags, s.Count, s.Weight)
		for _, l := range p.Stack(nil, s.Stack) {
			line += " " + dumpPlace(p, l)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

func dumpPlace(p *ingest.Profile, l ingest.LocationID) string {
	loc := p.Locations[l]
	o := &p.Objects[loc.Object]
	text := o.File.Path
	if o.Kind != ingest.Unmapped || p.Names == nil || len(p.Names.At(l)) == 0 {
		text += fmt.Sprintf("+%#x", uint64(loc.Offset))
	}
	if p.Names == nil {
		return text
	}
	for _, f := range p.Names.At(l) {
		fn := p.Names.Functions[f.Func]
		text += "=" + fn.SystemName
		if fn.File != "" {
			text += fmt.Sprintf(" %s:%d:%d:%d", fn.File, fn.StartLine, f.Line, f.Column)
		}
	}
	return text
}

// proto returns the protobuf form of a message in JSON.
func proto(t testing.TB, text string) []byte {
	t.Helper()
	if !json.Valid([]byte(text)) {
		t.Fatalf("not JSON: %s", text)
	}
	b, err := fromJSON(nil, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// delimited returns messages after their lengths.
func delimited(messages ...[]byte) (b []byte) {
	for _, m := range messages {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(m))), m...)
	}
	return b
}

// packed returns a message packed by zstd.
func packed(b []byte) []byte { return frames().Pack(nil, b) }

func read(data []byte, opts Options) (*ingest.Profile, error) {
	return Read("in.otlp", bytes.NewReader(data), int64(len(data)), opts)
}

func mustRead(t *testing.T, data []byte, opts Options) *ingest.Profile {
	t.Helper()
	if !Detect(data[:min(len(data), 512)]) {
		t.Errorf("not recognized: %.40q", data)
	}
	p, err := read(data, opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func equal(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// warnings returns the texts of a profile's warnings, and whether one is partial.
func warnings(p *ingest.Profile) (texts []string, partial bool) {
	for _, w := range p.Stats.Warnings {
		texts, partial = append(texts, w.Text), partial || w.Partial
	}
	return texts, partial
}

func TestForms(t *testing.T) {
	one := proto(t, small)
	line := strings.ReplaceAll(small, "\n", "")
	for name, data := range map[string][]byte{
		"protobuf":          one,
		"JSON":              []byte(small),
		"length":            delimited(one),
		"zstd":              delimited(packed(one)),
		"JSON after length": delimited([]byte(line)),
		"JSON, packed":      delimited(packed([]byte(line))),
		"snake case": []byte(strings.NewReplacer("stackIndex", "stack_index", "resourceProfiles",
			"resource_profiles", "mappingTable", "mapping_table").Replace(small)),
		"former names": []byte(strings.NewReplacer(`"samples":[`, `"sample":[`, `"lines"`, `"line"`, `"values":[`,
			`"value":[`).Replace(small)),
	} {
		t.Run(name, func(t *testing.T) {
			p := mustRead(t, data, allLabels)
			equal(t, dump(p), smallDump)
			if texts, partial := warnings(p); partial {
				t.Errorf("warnings %q", texts)
			}
		})
	}
}

func TestSeveralMessages(t *testing.T) {
	one := proto(t, small)
	line := strings.ReplaceAll(small, "\n", "") + "\n"
	want := slices.Clone(smallDump)
	for i, s := range want {
		for _, n := range []string{"4096 4096", "2 42", "1 1", "2 2"} {
			var a, b int
			fmt.Sscan(n, &a, &b)
			if strings.Contains(s, " "+n+":") {
				want[i] = strings.Replace(s, " "+n+":", fmt.Sprintf(" %d %d:", 2*a, 2*b), 1)
			}
		}
	}
	// the same message with its dictionary first
	var d, r []byte
	for k := protobuf.Fields(one); k.Next(); {
		if k.Number == dataDictionary {
			d = append(d, k.Raw()...)
		} else {
			r = append(r, k.Raw()...)
		}
	}
	for name, data := range map[string][]byte{
		"length":           delimited(one, one),
		"mixed":            delimited(packed(one), []byte(line)),
		"lines":            []byte(line + line),
		"joined":           slices.Concat(one, one),
		"dictionary first": slices.Concat(d, r, d, r),
	} {
		t.Run(name, func(t *testing.T) { equal(t, dump(mustRead(t, data, allLabels)), want) })
	}
}

// remade returns a message with parts changed.
func remade(t *testing.T, b []byte, path []uint64, change func([]byte) []byte) []byte {
	t.Helper()
	out, err := rebuild(b, path, func(b []byte) ([]byte, error) { return change(b), nil })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// toSample is the path to the samples.
var toSample = []uint64{dataResources, resourceScopes, scopeProfile, profileSample}

// asFormer returns a message in the form of release 1.9; with loose its numbers are not packed.
func asFormer(t *testing.T, b []byte, renumber map[uint64]uint64, loose bool) []byte {
	return remade(t, b, toSample, func(s []byte) (out []byte) {
		for k := protobuf.Fields(s); k.Next(); {
			f := k.Field
			n := int(f.Number)
			if to, ok := renumber[f.Number]; ok {
				n = int(to)
			}
			switch {
			case f.Wire == protobuf.Varint:
				out = protobuf.AppendField(out, n, f.Value)
			case loose && n == sampleTimes:
				for i := 0; i < len(f.Body); i += 8 {
					out = append(append(out, sampleTimes<<3|protobuf.Fixed64), f.Body[i:i+8]...)
				}
			case loose:
				list, _ := protobuf.Numbers([]uint64(nil), &f)
				for _, v := range list {
					out = protobuf.AppendField(out, n, v)
				}
			default:
				out = protobuf.AppendBytes(out, n, f.Body)
			}
		}
		return out
	})
}

func TestVersions(t *testing.T) {
	one := proto(t, small)
	former := map[uint64]uint64{2: 3, 3: 4, 4: 2}
	none := map[uint64]uint64{}
	for name, data := range map[string][]byte{
		"1.10, not packed": asFormer(t, one, none, true),
		"1.9":              asFormer(t, one, former, false),
		"1.9, not packed":  asFormer(t, one, former, true),
	} {
		t.Run(name, func(t *testing.T) { equal(t, dump(mustRead(t, data, allLabels)), smallDump) })
	}
	// A file of both: the version of a message is checked again.
	old := asFormer(t, one, former, false)
	want := dump(mustRead(t, delimited(one, one, one), allLabels))
	for name, data := range map[string][]byte{"old, new": delimited(old, one, old), "new, old": delimited(one, old, one)} {
		t.Run(name, func(t *testing.T) { equal(t, dump(mustRead(t, data, allLabels)), want) })
	}
	// Samples with values of 1 and times only, as an agent wrote them for release 1.9: their values
	// would be attributes of the first mapping.
	text := strings.NewReplacer(`"attributeIndices":[1,2],"timestamps`, `"values":["3","3"],"timestamps`,
		`"attributeIndices":[1],"linkIndex":1,"timestamps`, `"values":["3"],"timestamps`,
		`"attributeIndices":[1],"values"`, `"values"`).Replace(small)
	want = dump(mustRead(t, []byte(text), allLabels))
	old = asFormer(t, proto(t, text), former, false)
	equal(t, dump(mustRead(t, old, allLabels)), want)
	equal(t, dump(mustRead(t, delimited(one, old), allLabels)),
		dump(mustRead(t, delimited(one, proto(t, text)), allLabels)))
	// A message that both versions allow is in that of the one before: 1 is a value, or "worker".
	either := proto(t, `{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"sampleType":`+
		`{"typeStrindex":1,"unitStrindex":2},"samples":[{"stackIndex":1,"values":["1"],"timestampsUnixNano":["7"]}]}]}]}],`+
		small[strings.Index(small, `"dictionary"`):])
	oldEither := asFormer(t, either, former, false)
	equal(t, dump(mustRead(t, delimited(old, oldEither), allLabels)), dump(mustRead(t, delimited(old, either), allLabels)))
	if got := dump(mustRead(t, oldEither, allLabels)); !strings.Contains(got[0], " worker ") {
		t.Errorf("alone it is in the current version: %s", got)
	}
}

func TestRefused(t *testing.T) {
	one := proto(t, small)
	none := func([]byte) []byte { return nil }
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"no dictionary": {[]byte(`{"resourceProfiles":[{}]}`), "release 1.6"},
		"1.7": {remade(t, proto(t, strings.Replace(small, "stackTable", "x", 1)), toSample, none),
			"release 1.7"},
		"neither": {asFormer(t, one, map[uint64]uint64{1: 3, 2: 1, 4: 2}, false), "neither"},
		"two different dictionaries": {slices.Concat(one, protobuf.AppendBytes(nil, dataDictionary,
			protobuf.AppendBytes(nil, stringTable, "x")), one), "several dictionaries"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := read(c.data, allLabels)
			text := fmt.Sprint(err)
			if p != nil {
				texts, partial := warnings(p)
				if !partial {
					t.Errorf("not partial")
				}
				text = strings.Join(texts, "\n")
			}
			if !strings.Contains(text, c.want) {
				t.Errorf("error %s, want %q", text, c.want)
			}
		})
	}
}

func TestSelected(t *testing.T) {
	for name, c := range map[string]struct {
		opts Options
		want []string
	}{
		"event": {Options{Select: Select{Event: "alloc"}},
			[]string{"alloc/bytes pid -1 tid -1 cpu -1  [] 4096 4096: prog+0x1100"}},
		"process": {Options{Select: Select{PIDs: []int32{8}}},
			[]string{"alloc/bytes pid -1 tid -1 cpu -1  [] 4096 4096: prog+0x1100"}},
		"cpu": {Options{Select: Select{CPUs: []int32{3}}}, []string{
			"samples/count pid -1 tid -1 cpu -1 worker [] 2 2: prog+0x1100 [kernel.kallsyms]+0x40=do_idle"}},
		"time": {Options{From: 2e9, Until: 26e8}, []string{
			"off_cpu/nanoseconds pid -1 tid -1 cpu -1 worker [] 1 12: prog+0x1100 " +
				"[kernel.kallsyms]+0x40=do_idle",
			"samples/count pid -1 tid -1 cpu -1 worker [] 1 1: prog+0x1100 [kernel.kallsyms]+0x40=do_idle"}},
		"intervals": {Options{Select: Select{Event: "samples",
			Keep: ingest.Keep{Tags: "label:service.name,time:500ms"}}}, []string{
			"samples/count pid -1 tid -1 cpu -1 worker [service.name=shop time=1.0] 1 1: " +
				"prog+0x1100 [kernel.kallsyms]+0x40=do_idle",
			"samples/count pid -1 tid -1 cpu -1 worker [service.name=shop time=2.5] 1 1: " +
				"prog+0x1100 [kernel.kallsyms]+0x40=do_idle",
			"samples/count pid -1 tid -1 cpu -1 worker [service.name=shop time=3.0] 1 1: " +
				"[cpython]=mod.handle /app/a.py:9:12:3 prog+0x1100 +0x0"}},
	} {
		t.Run(name, func(t *testing.T) {
			equal(t, dump(mustRead(t, []byte(small), c.opts)), c.want)
		})
	}
}

// TestReplay: each time of a sample is visited, in order, with the locations of the Profile.
func TestReplay(t *testing.T) {
	data := []byte(small)
	p := mustRead(t, data, Options{})
	var got []string
	n, err := Replay(t.Context(), "in", bytes.NewReader(data), int64(len(data)), Options{}, p,
		func(o *Observation) error {
			line := fmt.Sprintf("%d %s %s %d/%d cpu %d: %d", o.Time, p.Events[o.Event].Name, o.Comm, o.PID,
				o.TID, o.CPU, o.Value)
			for _, l := range o.Stack {
				line += " " + dumpPlace(p, l)
			}
			got = append(got, line)
			return nil
		})
	if n != 5 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	idle := " prog+0x1100 [kernel.kallsyms]+0x40=do_idle"
	equal(t, got, []string{
		"1000000001 samples worker 7/-1 cpu 3: 1" + idle,
		"1000000001 off_cpu worker 7/-1 cpu -1: 30" + idle,
		"2000000000 off_cpu worker 7/-1 cpu -1: 12" + idle,
		"2500000000 samples worker 7/-1 cpu 3: 1" + idle,
		"3000000000 samples worker 7/-1 cpu -1: 1 [cpython]=mod.handle /app/a.py:9:12:3 prog+0x1100 +0x0",
	})
}

func TestMeta(t *testing.T) {
	m := mustRead(t, []byte(small), Options{}).Meta
	if m.StartNanos != 1e9 || m.Duration != 5e9 || m.Recorder != "agent 1" || m.MainProgram != "prog" {
		t.Errorf("got %+v", m)
	}
	if h := m.Pprof; h == nil || h.PeriodType != "cpu" || h.PeriodUnit != "nanoseconds" || h.Period != 52 {
		t.Errorf("period %+v", h)
	}
}

// TestDamagedSamples: samples with indices out of tables are left out, with their number and place.
func TestDamagedSamples(t *testing.T) {
	for name, edit := range map[string][2]string{
		"stack":     {`"stackIndex":2`, `"stackIndex":9`},
		"negative":  {`"stackIndex":2`, `"stackIndex":-1`},
		"attribute": {`"stackIndex":2,"attributeIndices":[1]`, `"stackIndex":2,"attributeIndices":[99]`},
		"link":      {`"linkIndex":1`, `"linkIndex":5`},
		"location":  {`[3,1,4]`, `[3,1,44]`},
		"mapping":   {`{"address":"77"`, `{"mappingIndex":8,"address":"77"`},
		"function":  {`{"functionIndex":2,`, `{"functionIndex":55,`},
		"string":    {`"systemNameStrindex":12`, `"systemNameStrindex":1200`},
		"shape":     {`["3000000000"]`, `[]`},
		"times":     {`["3000000000"]`, `["3000000000"],"values":["1","1"]`},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(small, edit[0]) {
				t.Fatalf("nothing to edit: %s", edit[0])
			}
			for _, data := range [][]byte{[]byte(strings.Replace(small, edit[0], edit[1], 1)),
				proto(t, strings.Replace(small, edit[0], edit[1], 1))} {
				p, err := read(data, allLabels)
				if err != nil {
					t.Fatal(err)
				}
				equal(t, dump(p), slices.Delete(slices.Clone(smallDump), 2, 3))
				texts, partial := warnings(p)
				if !partial || !strings.Contains(texts[0], "1 of 4 samples left out") {
					t.Errorf("warnings %q", texts)
				}
			}
		})
	}
}

// TestStrangeTexts: texts that are not UTF-8, and values nested deeply, are labels and names.
func TestStrangeTexts(t *testing.T) {
	one := proto(t, strings.ReplaceAll(strings.ReplaceAll(small, "do_idle", "do_xxle"), `"shop"`, `"shxx"`))
	p := mustRead(t, bytes.ReplaceAll(one, []byte("xx"), []byte("\xff\xfe")), allLabels)
	text := strings.Join(dump(p), "\n")
	if !strings.Contains(text, "service.name=sh\xff\xfe") || !strings.Contains(text, "=do_\xff\xfele") {
		t.Errorf("got %q", text)
	}
	var out bytes.Buffer
	if err := Write(&out, p, pprof.WriteOptions{}, WriteOptions{JSON: true}); err != nil || !utf8.Valid(out.Bytes()) {
		t.Errorf("%v: %.300q", err, out.Bytes())
	}
	value := protobuf.AppendBytes(nil, valueString, "x")
	for range 2000 {
		value = protobuf.AppendBytes(nil, valueArray, protobuf.AppendBytes(nil, 1, value))
	}
	deep := remade(t, proto(t, small), []uint64{dataResources, resourceResource, 1}, func(b []byte) []byte {
		if !bytes.Contains(b, []byte("service.name")) {
			return b
		}
		return protobuf.AppendBytes(protobuf.AppendBytes(nil, 1, "service.name"), 2, value)
	})
	if text := strings.Join(dump(mustRead(t, deep, allLabels)), "\n"); !strings.Contains(text, "[[[[...]]]]") {
		t.Errorf("got %s", text)
	}
}

// TestNegativePeriod: a period below zero is none.
func TestNegativePeriod(t *testing.T) {
	text := strings.NewReplacer(`"typeStrindex":3,"unitStrindex":4`, `"typeStrindex":1,"unitStrindex":2`,
		`"period":"52"`, `"period":"-52"`).Replace(small)
	p := mustRead(t, []byte(text), Options{})
	if p.Meta.Pprof.Period != 0 || p.Events[0].Period != 0 {
		t.Errorf("periods %d and %d", p.Meta.Pprof.Period, p.Events[0].Period)
	}
	if texts, _ := warnings(p); !slices.Contains(texts, "in.otlp: 1 negative periods left out") {
		t.Errorf("warnings %q", texts)
	}
}

// TestLengthOfTimes: times are 8 bytes each.
func TestLengthOfTimes(t *testing.T) {
	data := remade(t, proto(t, small), append(slices.Clone(toSample), sampleTimes),
		func(b []byte) []byte { return b[:len(b)-1] })
	p, err := read(data, allLabels)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, dump(p), smallDump[:1])
	if texts, partial := warnings(p); !partial || !strings.Contains(texts[0], "3 of 4 samples left out") {
		t.Errorf("warnings %q", texts)
	}
}

func TestNegativeValues(t *testing.T) {
	p := mustRead(t, []byte(strings.Replace(small, `"30"`, `"-30"`, 1)), Options{})
	if texts, _ := warnings(p); !slices.ContainsFunc(texts, func(s string) bool {
		return strings.Contains(s, "1 negative values")
	}) {
		t.Errorf("warnings %q", texts)
	}
}

// TestTruncated: what is before the end of a truncated file is kept, and the rest reported.
func TestTruncated(t *testing.T) {
	one := proto(t, small)
	line := []byte(strings.ReplaceAll(small, "\n", ""))
	for name, whole := range map[string][]byte{
		"length": delimited(one, packed(one)), "protobuf": one, "lines": slices.Concat(line, []byte("\n"), line),
	} {
		t.Run(name, func(t *testing.T) {
			first := len(delimited(one))
			if name == "lines" {
				first = len(line)
			}
			for n := range len(whole) {
				p, err := read(whole[:n], allLabels)
				if name == "protobuf" || n < first {
					if err == nil && len(p.Samples) > 0 {
						if _, partial := warnings(p); !partial {
							t.Fatalf("%d of %d bytes: no warning", n, len(whole))
						}
					}
					continue
				}
				if err != nil {
					t.Fatalf("%d of %d bytes: %v", n, len(whole), err)
				}
				equal(t, dump(p), smallDump)
				texts, partial := warnings(p)
				atEnd := n == first || name == "lines" && n == first+1
				if partial == atEnd {
					t.Fatalf("%d of %d bytes: warnings %q", n, len(whole), texts)
				}
			}
		})
	}
}

// TestZeros: pages that were lost at a power cut are damage, wherever they are. One empty message may end
// a file.
func TestZeros(t *testing.T) {
	one := delimited(proto(t, small))
	zeros := make([]byte, 40)
	zeroed := delimited(packed(make([]byte, 5000)))
	for name, c := range map[string]struct {
		data    []byte
		damaged bool
	}{
		"none":                 {one, false},
		"an empty message":     {slices.Concat(one, zeros[:4]), false},
		"a length cut off":     {slices.Concat(one, zeros[:3]), true},
		"two lengths":          {slices.Concat(one, zeros[:8]), true},
		"no multiple of four":  {slices.Concat(one, zeros[:39]), true},
		"many pages":           {slices.Concat(one, make([]byte, 200<<10)), true},
		"before messages":      {slices.Concat(one, zeros, one), true},
		"a message of zeros":   {slices.Concat(one, []byte{0, 0, 0, 36}, zeros[:36]), true},
		"zeros in zstd":        {slices.Concat(one, zeroed), true},
		"the end of a message": {slices.Concat(one, one[:100], make([]byte, len(one)-100)), true},
	} {
		t.Run(name, func(t *testing.T) {
			p := mustRead(t, c.data, allLabels)
			texts, partial := warnings(p)
			if partial != c.damaged {
				t.Errorf("warnings %q", texts)
			}
			if got := dump(p); name != "before messages" {
				equal(t, got, smallDump)
			}
		})
	}
}

// TestHostile: numbers of a file allocate nothing.
func TestHostile(t *testing.T) {
	deep := strings.Repeat(`{"arrayValue":{"values":[`, 2000) + strings.Repeat(`]}}`, 2000)
	for name, data := range map[string][]byte{
		"length":      {0x1f, 0xff, 0xff, 0xff, 0x0a, 0x02, 0x0a, 0x00},
		"field":       {0x0a, 0xff, 0xff, 0xff, 0x7f, 0x0a, 0x00},
		"zstd":        delimited(append(slices.Clone(zstdMagic), 0xa4, 0, 0, 0, 0x20, 1)),
		"empty":       {},
		"JSON":        []byte(`{"resourceProfiles":[{"resource":{"attributes":[{"key":"a","value":` + deep + `}]}}]}`),
		"JSON, types": []byte(`{"resourceProfiles":{"resource":7},"dictionary":[1,"x",null]}`),
	} {
		t.Run(name, func(t *testing.T) {
			if got := testing.AllocsPerRun(1, func() { _, _ = read(data, Options{}) }); got > 5000 {
				t.Errorf("%v allocations", got)
			}
		})
	}
}

// TestBomb: a small file with messages that unpack to much is refused, by one message or by all; a limit
// of the user's allows it.
func TestBomb(t *testing.T) {
	one := proto(t, small)
	field := protobuf.AppendBytes(nil, 9, make([]byte, 60<<20)) // it is skipped
	large := packed(append(slices.Clone(one), field...))
	huge := packed(append(slices.Clone(one), append(field, field...)...))
	for name, data := range map[string][]byte{
		"one": delimited(huge), "many": delimited(large, large, large, large, large, large),
	} {
		if _, err := read(data, Options{}); !errors.Is(err, files.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, data := range map[string][]byte{"one": delimited(huge), "two": delimited(large, large)} {
		opts := Options{Select: Select{MaxUnpacked: 1 << 30}}
		if p, err := read(data, opts); err != nil || len(p.Samples) == 0 {
			t.Errorf("%s, allowed: %v", name, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	one := proto(f, small)
	f.Add(one)
	f.Add([]byte(small))
	f.Add(delimited(one, packed(one)))
	f.Fuzz(func(t *testing.T, data []byte) {
		Detect(data)
		p, err := read(data, allLabels)
		if err != nil {
			return
		}
		for i := range p.Samples {
			for _, l := range p.Stack(nil, p.Samples[i].Stack) {
				dumpPlace(p, l)
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	data := must.Read(b, "../../../fixtures/otlp/agent.otlp")
	var whole []byte
	for range 100 {
		whole = append(whole, data...)
	}
	b.SetBytes(int64(len(whole)))
	for b.Loop() {
		if _, err := read(whole, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
