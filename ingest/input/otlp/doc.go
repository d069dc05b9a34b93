// Package otlp reads and writes profiles of OpenTelemetry, in the messages of
// opentelemetry.proto.profiles.v1development: what profilers send, and what the file exporter of the
// OpenTelemetry Collector writes.
//
// # Messages
//
// ProfilesData and ExportProfilesServiceRequest have the same fields:
//
//	1 resource_profiles: repeated: who was profiled
//	    1 resource: 1 attributes (KeyValue)
//	    2 scope_profiles: repeated: 1 scope (1 name, 2 version), 2 profiles, 3 schema_url
//	    3 schema_url
//	2 dictionary: the tables of the whole message; index 0 of each is empty
//	    1 mappings    1 memory_start, 2 memory_limit, 3 file_offset, 4 filename, 5 attributes
//	    2 locations   1 mapping, 2 address, 3 lines (1 function, 2 line, 3 column), 4 attributes
//	    3 functions   1 name, 2 system_name, 3 filename, 4 start_line
//	    4 links       1 trace_id, 2 span_id
//	    5 strings
//	    6 attributes  1 key, 2 value (AnyValue), 3 unit
//	    7 stacks      1 locations, leaf first
//
// A Profile has 1 sample_type (1 type, 2 unit), 2 samples, 3 time_unix_nano, 4 duration_nano,
// 5 period_type, 6 period, 7 profile_id, 8 dropped_attributes_count, 9 and 10 the original payload,
// 11 attributes. A Sample has 1 stack, 2 attributes, 3 link, 4 values, 5 timestamps_unix_nano: times
// without values, each standing for 1; values with as many times; or values alone. Other messages
// refer to strings, attributes and the rest by index.
//
// An address minus memory_start plus file_offset is an offset in the file, of a call for all frames
// but the innermost. Attributes of a mapping identify the file: process.executable.build_id.gnu,
// .go, and .htlhash (formerly .profiling). Attribute profile.frame.type of a location is native,
// kernel, go, or the name of an interpreter; addresses of the kernel are relative to _text.
//
// # Versions
//
// Release 1.10.0 of the protocol renumbered Sample: 1.8 and 1.9 have 2 values, 3 attributes, 4 link.
// Nothing in a file tells the version; it follows from the types of the fields, or, if no sample of
// a message has field 3 or 4, from the indices that field 2 would have (see version.go). Release 1.7
// and older have no table of stacks; they are refused.
//
// # Files
//
// A file is one message in protobuf; or messages of which each follows its length, 4 bytes
// big-endian, and can be packed by zstd; or messages in JSON, with white space between them. The
// JSON form has lowerCamelCase names, 64-bit integers as texts, and IDs in hexadecimal.
//
// # Speed
//
// Messages are decoded by hand. Measured on one core of a busy machine with a recording of the agent:
// Read 92 to 100 MB/s with all counting, the decoder of the Collector's pdata/pprofile (v0.159) alone
// 83 to 93. With it reading would cost twice as much, of a budget of 150 MB/s on an idle core.
package otlp
