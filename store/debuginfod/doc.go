// Package debuginfod gets files by build ID from debuginfod servers (debuginfod(8)), into the cache
// directory of elfutils' client, where store/local finds them. It keeps to that client's settings
// and cache: files that a server does not have are noted there, as empty ones, for a time.
//
// A file is put into the cache when it is complete and has the requested build ID.
// Requests that fail for a reason of the network or the server are repeated; a server that fails
// again and again is left out for the rest of the run.
package debuginfod
