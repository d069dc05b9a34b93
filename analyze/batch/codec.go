package batch

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"symbolize/buildid"
	"symbolize/ingest/decode"
)

var idType = reflect.TypeFor[buildid.ID]()

// encode appends a value in the form that the package comment describes. A type without one is
// a mistake of this package, which TestEveryField finds.
func encode(b []byte, v reflect.Value) []byte {
	if v.Type() == idType {
		return encodeID(b, v.Interface().(buildid.ID))
	}
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return binary.AppendUvarint(b, v.Uint())
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int:
		return binary.AppendVarint(b, v.Int())
	case reflect.String:
		return append(binary.AppendUvarint(b, uint64(v.Len())), v.String()...)
	case reflect.Slice:
		b = binary.AppendUvarint(b, uint64(v.Len()))
		switch v.Type().Elem().Kind() {
		case reflect.Uint64:
			return encodeWords(b, wordsOf[uint64](v))
		case reflect.Uint32:
			return encodeWords(b, wordsOf[uint32](v))
		}
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			b = encode(b, v.Index(i))
		}
		return b
	case reflect.Struct:
		for i := range v.NumField() {
			b = encode(b, v.Field(i))
		}
		return b
	case reflect.Map:
		return encodeMap(b, v)
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, 0)
		}
		return encode(append(b, 1), v.Elem())
	}
	panic("recordfile: no form for " + v.Type().String())
}

// wordsOf returns the elements of a slice with elements of the same form as T. Most of a file is
// such slices, and reflection for each element was half of the time of reading it.
func wordsOf[T uint32 | uint64](v reflect.Value) []T {
	return unsafe.Slice((*T)(v.UnsafePointer()), v.Len())
}

func encodeWords[T uint32 | uint64](b []byte, words []T) []byte {
	for _, w := range words {
		b = binary.AppendUvarint(b, uint64(w))
	}
	return b
}

// encodeMap writes the entries sorted by their encoded keys.
func encodeMap(b []byte, v reflect.Value) []byte {
	type entry struct{ key, value []byte }
	var entries []entry
	for it := v.MapRange(); it.Next(); {
		entries = append(entries, entry{encode(nil, it.Key()), encode(nil, it.Value())})
	}
	slices.SortFunc(entries, func(x, y entry) int { return slices.Compare(x.key, y.key) })
	b = binary.AppendUvarint(b, uint64(len(entries)))
	for _, e := range entries {
		b = append(append(b, e.key...), e.value...)
	}
	return b
}

func encodeID(b []byte, id buildid.ID) []byte {
	flags := byte(id.Space()) << 1
	if !id.Exact() {
		flags |= 1
	}
	b = binary.AppendUvarint(append(b, flags), uint64(id.Len()))
	return append(b, id.Bytes()...)
}

// decodeInto reads a value that encode wrote. Memory grows with the bytes read, whatever the
// lengths in them are.
func decodeInto(r *decode.Reader, v reflect.Value) {
	if v.Type() == idType {
		v.Set(reflect.ValueOf(decodeID(r)))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.U8() != 0)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n := r.Uvarint()
		if v.OverflowUint(n) {
			r.Fail("%d is no %s", n, v.Type())
		}
		v.SetUint(n)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int:
		n := r.Varint()
		if v.OverflowInt(n) {
			r.Fail("%d is no %s", n, v.Type())
		}
		v.SetInt(n)
	case reflect.String:
		v.SetString(string(r.Bytes(r.Uvarint())))
	case reflect.Slice:
		decodeSlice(r, v)
	case reflect.Array:
		for i := range v.Len() {
			decodeInto(r, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			decodeInto(r, v.Field(i))
		}
	case reflect.Map:
		decodeMap(r, v)
	case reflect.Pointer:
		if r.U8() != 0 {
			v.Set(reflect.New(v.Type().Elem()))
			decodeInto(r, v.Elem())
		}
	}
}

// decodeSlice reads a slice. Each element has at least one byte.
func decodeSlice(r *decode.Reader, v reflect.Value) {
	n := r.Uvarint()
	if n > uint64(r.Left()) {
		r.Fail("%d elements in %d bytes", n, r.Left())
		return
	}
	switch v.Type().Elem().Kind() {
	case reflect.Uint64:
		decodeWords[uint64](r, v, int(n))
		return
	case reflect.Uint32:
		decodeWords[uint32](r, v, int(n))
		return
	}
	for i := 0; i < int(n) && r.Err() == nil; i++ {
		if i == v.Cap() {
			v.Grow(min(int(n)-i, max(i, 16)))
		}
		v.SetLen(i + 1)
		decodeInto(r, v.Index(i))
	}
}

// decodeWords is decodeSlice for n words.
func decodeWords[T uint32 | uint64](r *decode.Reader, v reflect.Value, n int) {
	for i := 0; i < n && r.Err() == nil; {
		if i == v.Cap() {
			v.Grow(min(n-i, max(i, 16)))
		}
		v.SetLen(min(n, v.Cap()))
		for words := wordsOf[T](v); i < len(words); i++ {
			w := r.Uvarint()
			if uint64(T(w)) != w {
				r.Fail("%d is no %s", w, v.Type().Elem())
			}
			words[i] = T(w)
		}
	}
}

func decodeMap(r *decode.Reader, v reflect.Value) {
	n := r.Uvarint()
	if n == 0 {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for ; n > 0 && r.Err() == nil; n-- {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		decodeInto(r, key)
		decodeInto(r, value)
		if r.Err() == nil {
			v.SetMapIndex(key, value)
		}
	}
}

func decodeID(r *decode.Reader) buildid.ID {
	flags := r.U8()
	raw := r.Bytes(r.Uvarint())
	switch {
	case r.Err() != nil || len(raw) == 0:
		return buildid.ID{}
	case flags&1 != 0:
		return buildid.Padded(raw)
	}
	return buildid.Make(buildid.Space(flags>>1), raw)
}

// shape is a checksum of the names and types of all fields of a type: files of another shape
// were written by another version.
func shape(t reflect.Type) uint32 {
	var text strings.Builder
	writeShape(&text, t)
	return crc32.Checksum([]byte(text.String()), castagnoli)
}

func writeShape(w *strings.Builder, t reflect.Type) {
	fmt.Fprintf(w, "%s ", t.Kind())
	switch t.Kind() {
	case reflect.Struct:
		if t == idType {
			return
		}
		for i := range t.NumField() {
			w.WriteString(t.Field(i).Name + " ")
			writeShape(w, t.Field(i).Type)
		}
	case reflect.Slice, reflect.Pointer, reflect.Array:
		writeShape(w, t.Elem())
	case reflect.Map:
		writeShape(w, t.Key())
		writeShape(w, t.Elem())
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
