package otlp

import "strings"

// kind is the type of a field.
type kind uint8

const (
	integer kind = iota // int32, int64, uint32, uint64 or bool
	fixed               // fixed64
	double
	text
	octets // bytes: base64 in JSON
	octetsID
	nested
)

// field describes a field of a message for the conversion from and to JSON.
type field struct {
	number   int
	name     string // in JSON
	kind     kind
	repeated bool
	wide     bool // an integer of 64 bits: a text in JSON
	unsigned bool
	isBool   bool
	oneof    bool     // is written also if it is zero
	message  *message // of nested
}

// message describes a message.
type message struct {
	fields []field
	names  map[string]*field // by every name in JSON
}

// Names of fields in releases before 1.10.
var formerNames = map[string]string{"samples": "sample", "lines": "line", "values": "value",
	"timeUnixNano": "timeNanos", "durationNano": "durationNanos"}

// define sets the fields of a message.
func (m *message) define(fields ...field) {
	m.fields, m.names = fields, make(map[string]*field)
	for i := range fields {
		f := &fields[i]
		m.names[f.name], m.names[snake(f.name)] = f, f
		if old := formerNames[f.name]; old != "" {
			m.names[old] = f
		}
	}
}

// snake converts lowerCamelCase to snake_case.
func snake(name string) string {
	var b strings.Builder
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// profilesData is the message of a file.
var profilesData = makeSchema()

func makeSchema() *message {
	var data, resourceProfiles, resource, scopeProfiles, scope, profile, valueType, sample, dictionary,
		mapping, location, line, function, link, attribute, stack, anyValue, array, list, keyValue,
		entity message
	one := func(n int, name string, k kind) field { return field{number: n, name: name, kind: k} }
	wide := func(n int, name string) field { return field{number: n, name: name, wide: true} }
	address := func(n int, name string) field {
		return field{number: n, name: name, wide: true, unsigned: true}
	}
	many := func(f field) field { f.repeated = true; return f }
	sub := func(n int, name string, m *message) field {
		return field{number: n, name: name, kind: nested, message: m}
	}
	data.define(many(sub(1, "resourceProfiles", &resourceProfiles)), sub(2, "dictionary", &dictionary))
	resourceProfiles.define(sub(1, "resource", &resource), many(sub(2, "scopeProfiles", &scopeProfiles)),
		one(3, "schemaUrl", text))
	resource.define(many(sub(1, "attributes", &keyValue)), one(2, "droppedAttributesCount", integer),
		many(sub(3, "entityRefs", &entity)))
	entity.define(one(1, "schemaUrl", text), one(2, "type", text), many(one(3, "idKeys", text)),
		many(one(4, "descriptionKeys", text)))
	keyValue.define(one(1, "key", text), sub(2, "value", &anyValue), one(3, "keyStrindex", integer))
	anyValue.define(one(1, "stringValue", text), field{number: 2, name: "boolValue", isBool: true,
		oneof: true}, field{number: 3, name: "intValue", wide: true, oneof: true},
		one(4, "doubleValue", double), sub(5, "arrayValue", &array), sub(6, "kvlistValue", &list),
		one(7, "bytesValue", octets), field{number: 8, name: "stringValueStrindex", oneof: true})
	array.define(many(sub(1, "values", &anyValue)))
	list.define(many(sub(1, "values", &keyValue)))
	scopeProfiles.define(sub(1, "scope", &scope), many(sub(2, "profiles", &profile)),
		one(3, "schemaUrl", text))
	scope.define(one(1, "name", text), one(2, "version", text), many(sub(3, "attributes", &keyValue)),
		one(4, "droppedAttributesCount", integer))
	profile.define(sub(1, "sampleType", &valueType), many(sub(2, "samples", &sample)),
		one(3, "timeUnixNano", fixed), address(4, "durationNano"), sub(5, "periodType", &valueType),
		wide(6, "period"), one(7, "profileId", octetsID), one(8, "droppedAttributesCount", integer),
		one(9, "originalPayloadFormat", text), one(10, "originalPayload", octets),
		many(one(11, "attributeIndices", integer)))
	valueType.define(one(1, "typeStrindex", integer), one(2, "unitStrindex", integer))
	sample.define(one(1, "stackIndex", integer), many(one(2, "attributeIndices", integer)),
		one(3, "linkIndex", integer), many(wide(4, "values")),
		many(one(5, "timestampsUnixNano", fixed)))
	dictionary.define(many(sub(1, "mappingTable", &mapping)), many(sub(2, "locationTable", &location)),
		many(sub(3, "functionTable", &function)), many(sub(4, "linkTable", &link)),
		many(one(5, "stringTable", text)), many(sub(6, "attributeTable", &attribute)),
		many(sub(7, "stackTable", &stack)))
	mapping.define(address(1, "memoryStart"), address(2, "memoryLimit"), address(3, "fileOffset"),
		one(4, "filenameStrindex", integer), many(one(5, "attributeIndices", integer)))
	location.define(one(1, "mappingIndex", integer), address(2, "address"), many(sub(3, "lines", &line)),
		many(one(4, "attributeIndices", integer)))
	line.define(one(1, "functionIndex", integer), wide(2, "line"), wide(3, "column"))
	function.define(one(1, "nameStrindex", integer), one(2, "systemNameStrindex", integer),
		one(3, "filenameStrindex", integer), wide(4, "startLine"))
	link.define(one(1, "traceId", octetsID), one(2, "spanId", octetsID))
	attribute.define(one(1, "keyStrindex", integer), sub(2, "value", &anyValue),
		one(3, "unitStrindex", integer))
	stack.define(many(one(1, "locationIndices", integer)))
	return &data
}
