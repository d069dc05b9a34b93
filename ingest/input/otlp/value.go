package otlp

import (
	"bytes"
	"cmp"
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
	k := protobuf.Fields(value)
	for k.Next() {
		t.Text, t.Numeric = "", false
		if k.Number == valueInt && k.Wire == protobuf.Varint {
			t.Numeric, t.Number = true, int64(k.Value)
			continue
		}
		t.Text = string(c.appendValue(nil, &k.Field, 0))
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
	for el := protobuf.Fields(f.Body); el.Next(); {
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
		if inner := protobuf.Fields(value); inner.Next() {
			b = c.appendValue(b, &inner.Field, depth)
		}
	}
	return append(b, ']')
}

// keyValue returns the key of a KeyValue, and its value as it is encoded.
func (c *contents) keyValue(b []byte) (key, value []byte) {
	k := protobuf.Fields(b)
	for k.Next() {
		switch k.Number {
		case 1:
			key = k.Body
		case 2:
			value = k.Body
		case 3:
			key, _ = c.entry(stringTable, k.Value)
		}
	}
	return key, value
}

// attribute is a decoded entry of the table of attributes.
type attribute struct {
	key, value, unit []byte
	kind             attributeKind
	labels           use        // of a sample
	frame            *frameType // of a location
}

// attributeKind is what an attribute is used for.
type attributeKind uint8

const (
	otherKind attributeKind = iota
	buildIDKind
	frameTypeKind
	threadNameKind
	threadIDKind
	cpuKind
	processIDKind
	hostNameKind
	headerKind // of a profile, as a pprof file has it
)

// kindOf returns the kind of a key.
func kindOf(key []byte) attributeKind {
	switch string(key) {
	case keyOwnID:
		return buildIDKind
	case keyFrameType:
		return frameTypeKind
	case keyThreadName:
		return threadNameKind
	case keyThreadID:
		return threadIDKind
	case keyCPU:
		return cpuKind
	case keyProcessID:
		return processIDKind
	case keyHostName:
		return hostNameKind
	case keyComment, keyDropFrames, keyKeepFrames, keyDocURL:
		return headerKind
	}
	if bytes.HasPrefix(key, []byte(keyBuildID)) {
		return buildIDKind
	}
	return otherKind
}

// maxAttributes bounds the decoded attributes of a message: more are decoded at each use.
const maxAttributes = 1 << 20

// attribute returns an entry of the table of attributes. It is valid until the next call.
func (c *contents) attribute(i uint64) (*attribute, error) {
	if i < uint64(len(c.attributeAt)) && c.attributeAt[i] > 0 {
		return &c.attributes[c.attributeAt[i]-1], nil
	}
	var a attribute
	b, err := c.entry(attributeTable, i)
	k := protobuf.Fields(b)
	for k.Next() && err == nil {
		switch k.Number {
		case 1:
			a.key, err = c.entry(stringTable, k.Value)
		case 2:
			a.value = k.Body
		case 3:
			a.unit, err = c.entry(stringTable, k.Value)
		}
	}
	if err = cmp.Or(err, k.Err); err != nil {
		return nil, err
	}
	a.kind = kindOf(a.key)
	if len(c.attributes) == maxAttributes {
		return &a, nil
	}
	c.attributes = append(c.attributes, a)
	c.attributeAt[i] = uint32(len(c.attributes))
	return &c.attributes[len(c.attributes)-1], nil
}

// texts returns the strings of an AnyValue that is one, or an array of them.
func (c *contents) texts(value []byte) (list []string) {
	k := protobuf.Fields(value)
	for k.Next() {
		switch k.Number {
		case valueString, valueRef:
			list = append(list, string(c.appendValue(nil, &k.Field, 0)))
		case valueArray:
			for el := protobuf.Fields(k.Body); el.Next(); {
				list = append(list, c.texts(el.Body)...)
			}
		}
	}
	return list
}
