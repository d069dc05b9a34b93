// Package batch makes the profiles of many captures with one pass
// over each symbol table. Its three steps are functions over files; Run does them all on one
// machine, and engines that run tasks on many run them as commands.
//
//	Collect   a capture → its stacks, and its distinct locations in parts
//	Name      one part of all collected captures, joined with the store → names
//	Merge     the stacks of a group of captures and the names → one named profile
//
// The locations of an object are all in one part, by a hash of its build ID, so that Name opens
// each table once however many captures have its locations. Whether an address is a return address
// can depend on a table, too (resolve.Exact): Collect leaves that open (ingest.Object.Undecided),
// Name decides it, and Merge corrects the locations. The result has the same bytes as the result of
// analyze.Session.Load over the captures of the group, in the order of their paths.
//
// Collect keeps stacks of frame pointers as they were recorded. Name checks and completes them, if
// NameOptions.Chains requires it, capture by capture, as analyze.Session does: calls that arrive later
// repair old captures. Each task of Name does it for all captures, as it names the locations of callers
// that were restored, and writes the stacks of a share of the captures, which Merge uses.
//
// Symbols that captures themselves have, of BPF programs and of the kernels of bundles, go before
// those of the store. Collect names the locations in such objects, and they are in no part.
//
// The labels of what samples access (Group.Accesses) are no names: Merge finds them by the tables of types in the
// store, capture by capture, and asks the store again where a table has come since.
//
// # Files
//
// Files are written atomically, and their content only depends on the inputs: any task may be
// killed, run twice or run in two places. Their form is that of package recordfile.
//
// Collect writes packs of up to 256 captures. A pack has the records "pack" (packHead), "heads"
// ([]Head); for the capture N of these "stacks-N" (ingest.Profile) and "own-N", the names that the
// capture itself gave; and "part-R" ([]places), the locations of all in part R. Until all its
// captures are read, a task keeps each in a pack of its own below ".loose". A file of Name has a
// record for each object, by its key: "gnu:" and the build ID in hexadecimal, filled up to 20
// bytes with zeros, or "symbol:" and the name that captures gave it; and the records "names"
// (namesHead) and "made" ([]made), the answers of the store that the names depend on; with
// completed stacks also "chains" (chainsMade), and "chain:" with the state of each capture of its
// share (ingest.Profile). Each task of Collect notes in a file of ShareExtension which captures it
// read, and in one of PlanExtension which all tasks are to read: Merge is refused while one is
// left, or a part is not named.
//
// A capture is known by its content: one that was collected under two paths counts once in a
// profile. Nothing depends on the store as a whole: reading a capture and naming an object each note
// their questions to it (analyze.Dependency), and are done again if an answer is another one.
package batch
