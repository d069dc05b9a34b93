// Package db is the store on disk: a Badger database inside a directory, written by one process
// at a time and read by any number. It knows keys, batches and generations; package store has
// the manifests and path rows that it keeps, and the only code that imports Badger is here.
//
// # Layout of the directory
//
//	FORMAT       "symbolize store", schema version; written once
//	lock         flock of the writer, with its holder
//	db/          the writer's database, there while one runs or after it was killed, and a
//	             journal of its transactions
//	gen/N/       generations: immutable snapshots, the newest two are kept
//	left/        a db/ with a journal that is being repeated
//	aside/       a db/ with a journal that could not be repeated to its end
//	remote/      manifests that came from a directory or bucket of tables, see package remote
//	used/        days on which objects were last indexed or used: notes, see uses.go
//
// A generation shares its files with db/ and with its neighbours by hard links. Readers open the
// newest one read-only and never see db/. Badger truncates a table file to nothing before it
// unlinks it, and the newest value log where it finds it damaged; through a hard link that would
// reach the generations. So a writer begins with a clone of the newest generation in which tables
// are copies and an empty log follows the newest shared one (guardLog), and ends by renaming db/
// into the next generation.
//
// A db/ that a killed writer left is never opened by Badger again. The next writer clones the
// newest generation as any other and repeats the transactions of the journal, which has them whole,
// up to the first that is damaged: so published data survives any damage to db/.
//
// # Keys
//
// The first byte is the type of a value. An object is named by objkey = space u8, first 20 bytes of
// the build ID zero-padded, true length u8.
//
//	'm' objkey                               manifest
//	't' objkey kind u8 sum 16 part u8 be32   a part of a table: header, chunk i, strings i
//	'r' objkey kind u8 sum 16 be32           piece i of a captured input, zstd
//	'd' directory                            path rows of a directory
//	'b' sum 32 be32                          piece i of a blob, zstd, the first preceded
//	                                         by the size of the whole
//
// Blobs are shared by several objects: the entries of BPF programs, each function of
// which is an object, and their BTF. They are named by the SHA-256 of their content.
//
// sum is the head of the source's digest. Every value is in an envelope of its own (length, CRC-32C
// over key and payload), because Badger answers a damaged value with an empty one and no error.
//
// # Order of writing
//
// The parts of a source are written before the manifest that names them, in the same transaction
// where they fit into one, and blobs before that: all parts that a manifest lists are there. An
// interrupted writer leaves parts that no manifest names; GC drops them.
package db
