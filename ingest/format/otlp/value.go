package otlp

import (
	"bytes"
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
	for len(b) > 0 && err == nil {
		f, rest, ok := protobuf.Next(b)
		if !ok {
			return nil, errMalformed
		}
		switch f.Number {
		case 1:
			a.key, err = c.entry(stringTable, f.Value)
		case 2:
			a.value = f.Body
		case 3:
			a.unit, err = c.entry(stringTable, f.Value)
		}
		b = rest
	}
	if err != nil {
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
