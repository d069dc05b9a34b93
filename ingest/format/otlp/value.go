package otlp

import (
	"encoding/hex"
	"math"
	"strconv"

	"symbolize/ingest"
	"symbolize/ingest/protobuf"
)

// Numbers of the fields of AnyValue.
const (
	valueString = 1
	valueBool   = 2
	valueInt    = 3
	valueDouble = 4
	valueArray  = 5
	valueList   = 6
	valueBytes  = 7
	valueRef    = 8 // a string of the table
)

// tag sets the value of a tag from an AnyValue. Numbers of integers stay numbers; all others are
// texts.
func (c *contents) tag(t *ingest.Tag, value []byte) {
	for len(value) > 0 {
		f, rest, ok := protobuf.Next(value)
		if !ok {
			return
		}
		value = rest
		t.Text, t.Numeric = "", false
		if f.Number == valueInt && f.Wire == protobuf.Varint {
			t.Numeric, t.Number = true, int64(f.Value)
			continue
		}
		t.Text = string(c.appendValue(nil, &f, 0))
	}
}

// appendValue appends the text of a field of AnyValue: lists as in JSON.
func (c *contents) appendValue(b []byte, f *protobuf.Field, depth int) []byte {
	switch f.Number {
	case valueString:
		return append(b, f.Body...)
	case valueBool:
		return strconv.AppendBool(b, f.Value != 0)
	case valueInt:
		return strconv.AppendInt(b, int64(f.Value), 10)
	case valueDouble:
		return strconv.AppendFloat(b, math.Float64frombits(f.Value), 'g', -1, 64)
	case valueBytes:
		return hex.AppendEncode(b, f.Body)
	case valueRef:
		s, _ := c.entry(stringTable, f.Value)
		return append(b, s...)
	case valueArray, valueList:
		if depth == maxDepth {
			return append(b, "..."...)
		}
		return c.appendList(b, f, depth+1)
	}
	return b
}

// appendList appends the elements of an array or of a list of keys and values.
func (c *contents) appendList(b []byte, f *protobuf.Field, depth int) []byte {
	b = append(b, '[')
	first := true
	for list := f.Body; len(list) > 0; {
		el, rest, ok := protobuf.Next(list)
		if !ok {
			break
		}
		list = rest
		if !first {
			b = append(b, ',')
		}
		first = false
		value := el.Body
		if f.Number == valueList {
			var key []byte
			key, value = c.keyValue(el.Body)
			b = append(append(b, key...), '=')
		}
		if inner, _, ok := protobuf.Next(value); ok {
			b = c.appendValue(b, &inner, depth)
		}
	}
	return append(b, ']')
}

// keyValue returns the key of a KeyValue, and its value as it is encoded.
func (c *contents) keyValue(b []byte) (key, value []byte) {
	for len(b) > 0 {
		f, rest, ok := protobuf.Next(b)
		if !ok {
			break
		}
		switch f.Number {
		case 1:
			key = f.Body
		case 2:
			value = f.Body
		case 3:
			key, _ = c.entry(stringTable, f.Value)
		}
		b = rest
	}
	return key, value
}

// attribute returns the key of an entry of the table of attributes, its value as it is encoded, and
// its unit.
func (c *contents) attribute(i uint64) (key, value, unit []byte, err error) {
	b, err := c.entry(attributeTable, i)
	for len(b) > 0 && err == nil {
		f, rest, ok := protobuf.Next(b)
		if !ok {
			return key, value, unit, errMalformed
		}
		switch f.Number {
		case 1:
			key, err = c.entry(stringTable, f.Value)
		case 2:
			value = f.Body
		case 3:
			unit, err = c.entry(stringTable, f.Value)
		}
		b = rest
	}
	return key, value, unit, err
}

// texts returns the strings of an AnyValue that is one, or an array of them.
func (c *contents) texts(value []byte) (list []string) {
	for len(value) > 0 {
		f, rest, ok := protobuf.Next(value)
		if !ok {
			break
		}
		value = rest
		switch f.Number {
		case valueString, valueRef:
			list = append(list, string(c.appendValue(nil, &f, 0)))
		case valueArray:
			for b := f.Body; len(b) > 0; {
				el, rest, ok := protobuf.Next(b)
				if !ok {
					break
				}
				list = append(list, c.texts(el.Body)...)
				b = rest
			}
		}
	}
	return list
}
