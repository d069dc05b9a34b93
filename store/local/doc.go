// Package local finds, on this host, the files of a capture's objects, and has them indexed. A file
// is used only if its build ID is the recorded one, so that no name can be wrong:
//
//   - below the directories of Options.Roots: the recorded path, the file's name alone, trees of
//     build IDs and perf's cache (DIR/.debug);
//   - on this host (Options.Host): the recorded path, trees of build IDs (/usr/lib/debug/.build-id,
//     /usr/lib/.build-id), perf's cache, the cache of debuginfod's client; the running kernel's
//     symbols, modules and vdso.
//
// Of a program file that is found, the separate debug file is indexed, too, as indexer.Index finds
// it, or from the caches.
package local
