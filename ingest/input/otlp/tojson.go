package otlp

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"symbolize/ingest/protobuf"
	"symbolize/ingest/texts"
)

// appendJSON appends the JSON form of a ProfilesData in the current version. Fields that the schema
// lacks are left out: JSON has no place for them.
func appendJSON(out, data []byte) ([]byte, error) { return jsonMessage(out, data, profilesData, 0) }

// jsonMessage appends an object with the fields of a message, in the order of their numbers.
func jsonMessage(out, b []byte, m *message, depth int) ([]byte, error) {
	if depth > 2*maxDepth {
		return out, protobuf.ErrMalformed
	}
	values := make([][]protobuf.Field, len(m.fields))
	k := protobuf.Fields(b)
	for k.Next() {
		for i := range m.fields {
			if uint64(m.fields[i].number) == k.Number {
				values[i] = append(values[i], k.Field)
			}
		}
	}
	if k.Err != nil {
		return out, k.Err
	}
	out = append(out, '{')
	first := true
	for i, list := range values {
		if len(list) == 0 {
			continue
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		f := &m.fields[i]
		out = append(strconv.AppendQuote(out, f.name), ':')
		var err error
		if f.repeated {
			out, err = jsonList(out, list, f, depth)
		} else {
			out, err = jsonValue(out, &list[len(list)-1], f, depth)
		}
		if err != nil {
			return out, err
		}
	}
	return append(out, '}'), nil
}

// jsonList appends the elements of a repeated field, packed or not.
func jsonList(out []byte, list []protobuf.Field, f *field, depth int) (_ []byte, err error) {
	out = append(out, '[')
	n := 0
	add := func(v *protobuf.Field) {
		if n++; n > 1 {
			out = append(out, ',')
		}
		if err == nil {
			out, err = jsonValue(out, v, f, depth)
		}
	}
	for i := range list {
		v := &list[i]
		switch {
		case v.Wire != protobuf.Bytes || f.kind == nested || f.kind >= text:
			add(v)
		case f.kind == fixed:
			for b := v.Body; len(b) >= 8; b = b[8:] {
				add(&protobuf.Field{Value: binary.LittleEndian.Uint64(b)})
			}
		default:
			numbers, ok := protobuf.Numbers([]uint64(nil), v)
			if !ok {
				return out, protobuf.ErrMalformed
			}
			for _, x := range numbers {
				add(&protobuf.Field{Value: x})
			}
		}
	}
	return append(out, ']'), err
}

// jsonValue appends one value.
func jsonValue(out []byte, v *protobuf.Field, f *field, depth int) ([]byte, error) {
	switch f.kind {
	case nested:
		return jsonMessage(out, v.Body, f.message, depth+1)
	case text:
		return texts.AppendJSONString(out, strings.ToValidUTF8(string(v.Body), "\uFFFD")), nil
	case octets:
		return append(base64.StdEncoding.AppendEncode(append(out, '"'), v.Body), '"'), nil
	case octetsID:
		return append(hex.AppendEncode(append(out, '"'), v.Body), '"'), nil
	case double:
		d := math.Float64frombits(v.Value)
		if math.IsNaN(d) || math.IsInf(d, 0) {
			return append(strconv.AppendFloat(append(out, '"'), d, 'g', -1, 64), '"'), nil
		}
		return strconv.AppendFloat(out, d, 'g', -1, 64), nil
	case fixed:
		return append(strconv.AppendUint(append(out, '"'), v.Value, 10), '"'), nil
	}
	switch {
	case f.isBool:
		return strconv.AppendBool(out, v.Value != 0), nil
	case f.wide && f.unsigned:
		return append(strconv.AppendUint(append(out, '"'), v.Value, 10), '"'), nil
	case f.wide:
		return append(strconv.AppendInt(append(out, '"'), int64(v.Value), 10), '"'), nil
	}
	return strconv.AppendInt(out, int64(int32(v.Value)), 10), nil
}
