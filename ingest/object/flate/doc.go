// Package flate inflates zlib and raw DEFLATE streams (RFC 1950, RFC 1951), twice as
// fast as the standard library: compressed debug sections are hundreds of megabytes each,
// a stream cannot be divided among cores, and with the standard library inflating them
// takes longer than all the decoding of their contents.
//
// The speed comes from three things: 64 bits of input are examined together, a table
// entry has all of a code (value, extra bits, length), and the window lies in the same
// memory as the output, with room to copy past the end of a match.
//
// Refused are streams that end early, incomplete codes (except one code of one bit, which
// the standard library accepts, too), distances before the beginning, zlib headers with a
// preset dictionary, wrong checksums. The memory taken does not depend on the input.
package flate
