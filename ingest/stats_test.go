package ingest

import (
	"reflect"
	"testing"
)

// TestStatsAdd sets each field of Stats alone, so that Add forgets none: added to nothing it stays,
// and counts add up.
func TestStatsAdd(t *testing.T) {
	fields(reflect.TypeFor[Stats](), nil, func(name string, index []int) {
		set := func(n uint64) *Stats {
			s := new(Stats)
			switch f := reflect.ValueOf(s).Elem().FieldByIndex(index); v := f.Addr().Interface().(type) {
			case *uint64:
				*v = n
			case *bool:
				*v = true
			case *map[string]uint64:
				*v = map[string]uint64{"MMAP": n}
			case *[8]uint64:
				v[1], v[7] = n, n
			case *[]UnprovenCallers: // of two objects, in their order
				*v = []UnprovenCallers{{Path: "a", Pairs: n}, {Path: "b", Reason: RegisterUsed, Pairs: n}}
			case *[]Warning:
				*v = make([]Warning, n)
			default:
				t.Fatalf("%s: the test knows no %s", name, f.Type())
			}
			return s
		}
		get := func(s *Stats) any { return reflect.ValueOf(s).Elem().FieldByIndex(index).Interface() }
		var sum Stats
		sum.Add(set(2))
		if want := get(set(2)); !reflect.DeepEqual(get(&sum), want) {
			t.Errorf("%s: nothing and %v is %v", name, want, get(&sum))
		}
		sum.Add(set(3))
		want := get(set(5))
		if name == "Bytes" { // the largest copy that was asked for
			want = get(set(3))
		}
		if !reflect.DeepEqual(get(&sum), want) {
			t.Errorf("%s: 2 and 3 is %v, want %v", name, get(&sum), want)
		}
	})
}

// fields calls f for the fields of a struct and those of the structs in it.
func fields(typ reflect.Type, index []int, f func(name string, index []int)) {
	for i := range typ.NumField() {
		field, at := typ.Field(i), append(index[:len(index):len(index)], i)
		if field.Type.Kind() == reflect.Struct {
			fields(field.Type, at, f)
			continue
		}
		f(field.Name, at)
	}
}

// TestMainProgram: the program that the recorder ran, however little of it was sampled, unless all
// CPUs were recorded; never the recorder, if there is another.
func TestMainProgram(t *testing.T) {
	for _, tc := range []struct {
		name, command string
		weights       map[string]uint64 // of the objects' samples
		want          string
		programs      string // the command without arguments
	}{
		{name: "heaviest", weights: map[string]uint64{"/bin/a": 2, "/bin/b": 3, "/lib/c.so.6": 9}, want: "/bin/b"},
		{name: "recorded", command: "perf record -g ./a -a --token x", weights: map[string]uint64{"/srv/a": 1, "/bin/b": 3}, want: "/srv/a",
			programs: "perf record a"},
		{name: "all CPUs", command: "/usr/bin/perf record -ag sleep 1",
			weights: map[string]uint64{"/bin/sleep": 1, "/bin/b": 3, "/usr/bin/perf": 9}, want: "/bin/b",
			programs: "perf record -a"},
		{name: "all CPUs, long", command: "perf record --all-cpus sleep 1",
			weights: map[string]uint64{"/bin/sleep": 1, "/bin/b": 3}, want: "/bin/b", programs: "perf record -a"},
		{name: "of a bundle", command: "/srv/app/bin/a record --token x", weights: map[string]uint64{"/srv/app/bin/a": 3},
			want: "/srv/app/bin/a", programs: "a"},
		{name: "a shell's", command: "perf record sh -c ./a;./b", weights: map[string]uint64{"/bin/b": 3}, want: "/bin/b",
			programs: "perf record b"},
		{name: "recorder alone", command: "perf record -a", weights: map[string]uint64{"/bin/perf": 1}, want: "/bin/perf",
			programs: "perf record -a"},
		{name: "none", command: "perf record -a", weights: map[string]uint64{"/lib/c.so": 1}, programs: "perf record -a"},
	} {
		p := &Profile{Meta: Meta{Command: tc.command}, Leaves: []LocationID{0}}
		for path, n := range tc.weights {
			at := LocationID(len(p.Locations))
			p.Objects = append(p.Objects, Object{Kind: ELF, File: FileRef{Path: path}})
			p.Locations = append(p.Locations, Location{Object: ObjectID(at)})
			p.Leaves = append(p.Leaves, at)
			p.Samples = append(p.Samples, Sample{Stack: StackID(len(p.Leaves) - 1), Count: n})
		}
		main := func() string { return p.MainProgram(func(s *Sample) uint64 { return s.Count }) }
		if got := main(); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
		p.Meta.MainProgram = main()
		for range 2 { // again it changes nothing
			p.OmitArguments()
			if got := main(); got != tc.want || p.Meta.Command != tc.programs {
				t.Errorf("%s: without arguments %q, main program %q", tc.name, p.Meta.Command, got)
			}
		}
	}
}
