// Package flate inflates zlib and raw DEFLATE streams (RFC 1950, RFC 1951), twice as
// fast as the standard library: compressed debug sections are hundreds of megabytes each,
// a stream cannot be divided among cores, and with the standard library inflating them
// takes longer than all that is done with what is in them.
//
// The speed comes from three things: 64 bits of input are looked at together, a table
// entry says all of a code (what it stands for, its extra bits, how long it is), and the
// window lies in the same memory as the output, with room to copy past the end of a match.
//
// What is refused: streams that end early, codes that are not complete (but for one code
// of one bit, which the standard library takes, too), distances before the beginning,
// zlib headers with a preset dictionary, wrong checksums. The memory taken does not
// depend on the input.
package flate
