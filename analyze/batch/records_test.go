package batch

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"testing"

	"symbolize/buildid"
	"symbolize/ingest"
)

// fill gives every field of a value something: a field that the codec forgets is found.
func fill(rng *rand.Rand, v reflect.Value) {
	if v.Type() == reflect.TypeFor[buildid.ID]() {
		ids := []buildid.ID{
			buildid.New([]byte{1, 2, 3, byte(rng.Uint32()) | 1}), buildid.Padded([]byte{7, 8}),
			buildid.Make(buildid.JIT, []byte{9}), {}}
		v.Set(reflect.ValueOf(ids[rng.IntN(len(ids))]))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1 + rng.Uint64()>>1>>(64-v.Type().Bits()))
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int:
		v.SetInt(-1 - rng.Int64()>>(64-v.Type().Bits()))
	case reflect.String:
		v.SetString(string([]byte{'a', byte(rng.Uint32()), 0xff}))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(rng, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(rng, v.Field(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 3 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(rng, key)
			fill(rng, value)
			v.SetMapIndex(key, value)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(rng, v.Elem())
	}
}

// records are all types that files hold.
var records = []any{
	new(packHead), new([]Head), new(ingest.Profile), new([]places), new(ownNames), new(answers), new([]made),
}

func TestEveryField(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, record := range records {
		for _, filled := range []bool{false, true} {
			want := reflect.New(reflect.TypeOf(record).Elem())
			if filled {
				fill(rng, want.Elem())
			}
			path := filepath.Join(t.TempDir(), "file")
			w, err := createRecords(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(w.Put("x", pack(want.Interface())), w.Publish()); err != nil {
				t.Fatal(err)
			}
			f, err := openRecords(path)
			if err != nil {
				t.Fatal(err)
			}
			got := reflect.New(want.Type().Elem())
			if ok, err := f.Get("x", got.Interface()); !ok || err != nil {
				t.Fatalf("%T: %t %v", record, ok, err)
			}
			if !reflect.DeepEqual(got.Interface(), want.Interface()) {
				t.Errorf("%T, filled %t: got %+v, want %+v", record, filled, got.Elem(), want.Elem())
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// FuzzRecord: a record with a right checksum may hold anything.
func FuzzRecord(f *testing.F) {
	for i, record := range records {
		v := reflect.New(reflect.TypeOf(record).Elem())
		fill(rand.New(rand.NewPCG(3, uint64(i))), v.Elem())
		f.Add(uint8(i), encodeRecord(v.Interface()))
	}
	f.Fuzz(func(t *testing.T, i uint8, raw []byte) {
		value := reflect.New(reflect.TypeOf(records[int(i)%len(records)]).Elem())
		if decodeRecord("fuzz", raw, value.Interface()) != nil {
			return
		}
		if p, ok := value.Interface().(*ingest.Profile); ok && check(p) == nil {
			for s := range p.Callers {
				p.Stack(nil, ingest.StackID(s))
			}
		}
	})
}
