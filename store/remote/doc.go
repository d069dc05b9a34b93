// Package remote keeps finished symbol tables in a directory or a bucket, which many machines fill
// and read: the second tier after a store, with the same files of tables. Everything in it is written
// once and named by its content, so that two writers of one object write the same, and a reader finds
// any damage.
//
// # Layout, version 2
//
//	symbolize-remote                        "symbolize remote 2\n": the first push writes it
//	v2/manifests/XX/OBJECT/SUM              the facts of one store about an object
//	v2/inputs/YY/DIGEST                     inputs, as a store has them (store.Input)
//	v2/used/SUM                             notes: days on which objects were used
//
// OBJECT is SPACE-HEX of a build ID, as "gnu-93ac61ec…", XX the first byte of the ID, DIGEST the
// SHA-256 of the input, in hexadecimal, YY its first byte. A bucket of version 1, which had pieces of
// tables, is refused. Stores differ in what they know of an
// object: each adds a manifest, and a reader takes the union of all (store.MergeFacts,
// store.MergeSources), which does not depend on their order.
//
// A manifest is
//
//	"symbolize manifest 2\n"
//	"sum HEX\n"                  SHA-256 of all that follows
//	"source I DIGEST SIZE\n"     the input with the table of source I; SIZE in bytes
//	"raw I DIGEST SIZE\n"        the input with its captured input, if it has one
//	"blob ID DIGEST SIZE\n"      the input with a blob of the variants
//	"end\n"
//	bytes                        the manifest as the store has it (store.EncodeManifest)
//
// and SUM is the SHA-256 of these bytes alone: a store that has the same manifest need not read it,
// nor write it. It is written after all that it names.
//
// # Uses
//
// A note is
//
//	"symbolize used 1\n"
//	"DAY OBJECT\n"              of each object, sorted; DAY as 2006-01-02, UTC
//
// and SUM is the SHA-256 of all of it. Push writes a note of the days of last use that its store
// knows and that are later than those of the notes that are there; many notes are joined to one
// before they are removed. Prune removes an object if neither a note has a day from a limit on nor
// one of its manifests was written since: then its manifests, and then content that is as old and that
// no manifest names. It lists the notes again before it removes a manifest. Push writes content that
// is there but older than a few hours again, so that it is none of those.
//
// # Checks
//
// Each object that arrives has the SHA-256 that names it, before it is kept as it is and anything is
// merged; tables are not decoded (store.InputSink). A part that is damaged, absent or of another
// version is a Problem of the Result with its URL; the other parts are still transferred. A manifest
// that was merged and is not the local one is noted in the store's facts (db.Writer.Note) until a
// gc: it is not fetched again.
package remote
