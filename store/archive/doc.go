// Package archive has objects of a store as files that other stores import: those that `store
// export` writes and `store import` reads. An Assembly puts a source together again of its parts,
// whoever brought them.
//
// An archive is a tar file in one zstd frame, or in none, as before archives were compressed:
//
//	symbolize-store                               "schema N\n"
//	blob-HASH                                     content of a blob, before the first
//	                                              object that names it
//	OBJECT/manifest                               as the store has it
//	OBJECT/KIND-DIGEST/table                      header of the table
//	OBJECT/KIND-DIGEST/chunk-N, strings-N         its blocks, from 0
//	OBJECT/KIND-DIGEST/raw                        captured input, plain
//	end                                           "objects N\n"
//
// OBJECT is SPACE-HEX of the build ID, DIGEST the whole digest in hexadecimal. Objects are sorted
// by key and everything in an object as above, without times and owners: one store gives one
// sequence of bytes. Path rows stay behind, for they are true on one machine only.
package archive
