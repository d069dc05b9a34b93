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
