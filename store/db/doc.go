// Package db is the store on disk: tables in files that are named by their content, facts that
// name those files, and a Badger database as an index of the facts, which can be made again. One
// process at a time writes a store, any number read it. Package store has the manifests and path
// rows; the only code that imports Badger is here.
//
// # Layout of the directory
//
//	FORMAT          "symbolize store", schema version; written once
//	lock            flock of the writer, with its holder
//	inputs/DIGEST   inputs: tables and captured input of one file, or a blob
//	facts/DIGEST    commits: the manifests, path rows and blobs that one run adds
//	facts/.open-*   facts of a run that has not committed them yet
//	gen/N/          generations: the index of all facts, immutable; the newest two are kept
//	trash/N/        inputs and facts that the collection which made generation N no longer needs
//	trash/gen-N/    generations that readers have open still
//	used/           days on which objects were last indexed or used: notes, see uses.go
//
// DIGEST is the SHA-256 of the file in hexadecimal. An input (store.Input) has the parts of the
// tables and the captured input of one store.Contribution, without manifest and path, so that
// equal files anywhere give equal inputs; a directory in it lists the parts with their CRC-32C,
// which every read compares. Facts are records. The store is the union of all facts, in any order
// (store.MergeStored); of the path rows of a directory those of the highest level count, and a
// writer uses a level above all that it has seen. Facts that replace others, named by their
// digests, are the only removal: gc, rm and rebuild write the whole store as one file of facts.
//
// The index has for each object its manifest, for each directory its path rows, for each blob its
// input. A generation is written once and never opened for writing again. It notes which facts it
// has. An index that is damaged, absent or of other facts is passed over, and readers use the one
// before; facts that an index lacks they read themselves.
//
// # Facts
//
// Facts are
//
//	"symbolize facts 1\n"
//	records: type u8 | size LEB128 | payload | CRC-32C of type, size and payload u32
//
// of these types, the head first and the end last:
//
//	'h'  digests of the facts that these replace
//	'm'  manifest of an object, with where its sources are (store.AppendStored)
//	'd'  path rows of a directory: size of its name LEB128, name, level LEB128, rows (none remove it)
//	'b'  blob: its store.BlobID, the digest of its input, size of that LEB128
//	'n'  note: name of a manifest that was pulled from a bucket (package remote); gc drops it
//	'e'  number of records before it LEB128
//
// # Index
//
// A generation has a Badger database and a file INDEX, with the facts that are in it and the
// checksums of its files. The first byte of a key is the type of its value, objkey is space u8,
// the first 20 bytes of the build ID zero-padded, true length u8.
//
//	'm' objkey      manifest, with where its sources are (store.AppendStored)
//	'd' directory   path rows: level LEB128, rows; no rows if the directory was removed
//	'b' sum 32      blob: digest of its input, size of that LEB128
//	'n' sum 32      note: nothing
//
// # Crashes
//
// A run writes an input, then the record that names it into facts/.open-*, for each contribution.
// A commit syncs the inputs, then the facts, writes and syncs the generation in a new directory,
// renames the facts to their digest, and then the generation. So:
//
//   - A killed run leaves whole records in facts/.open-*: the next writer commits those with sound
//     inputs. An input that no facts name is left from a killed run; gc removes it.
//   - Facts that no generation has are in the store all the same: the next writer indexes them.
//   - A lost index loses nothing. The next writer makes it again from the facts. Entries of facts that
//     no index has are in memory up to some megabytes, then in a temporary database.
//   - Committed facts name only synced inputs. Whatever is damaged later a digest shows.
//   - A collection commits facts that replace the others, publishes, and only then moves files
//     that they do not name to trash/. Readers look there second. A file there that facts name
//     goes back.
//   - Badger holds a shared flock on the directory of an open index. trash/N is deleted when no
//     generation before N is locked, or after a day where the file system cannot lock. No clock
//     decides what the store keeps.
package db
