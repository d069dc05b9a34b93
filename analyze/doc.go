// Package analyze gives names to captures: it opens a store, adds the symbols of further files
// for one run, reads captures of any kind and returns an ingest.Profile with names, which
// analyze/export and ingest/input/pprof write in every format of the command.
//
//	s, err := analyze.Open(ctx, analyze.Options{Store: "/srv/symbols"})
//	…
//	defer s.Close()
//	p, err := s.Load(ctx, "perf.data")
//	…
//	err = export.Folded(os.Stdout, p, export.FoldedOptions{Event: p.DefaultEvent()})
//
// # Captures
//
// Load merges captures into one profile. Each hands them over one by one, with their samples at
// hand for a replay; Name and Merge are its second half. OpenInputs sorts the arguments of a
// command line: bundles that only serve other captures belong into Options.Bundles.
//
// # Errors
//
// Frames without a name are not errors: Profile.Names has the reason of each. Errors wrap the
// sentinels of the packages below, for errors.Is: store.ErrVersion and store.ErrDamaged of the
// store, input.ErrNotCapture and perfdata.ErrCutHeader of a capture, the context's own. The errors
// of this package are in errors.go. Many errors have a method Hint() string with the step that
// fixes them.
//
// A store that does not exist, a damaged file among several, a bundle of another boot are
// warnings: they go to the functions in Options, in the order in which they are found, and
// State.Partial reports whether the result lacks something because of them. Warnings of a
// single capture are in its Profile: Stats.Warnings and Names.Warnings.
//
// # The process
//
// Nothing here, nor below, reads the environment, writes to standard output or standard error,
// exits, or changes the garbage collector's settings: fixtures/house holds that as a test. While
// captures are read the tables hold few pointers, and debug.SetGCPercent(40) saves a fifth of the
// memory for next to no time: programs that read large captures may set it, as the command does.
//
// A Session may be used by one goroutine at a time; several Sessions may have one store open,
// also while another process writes to it. Programs that have symbol tables from elsewhere need
// no store: analyze/resolve names a Profile with any store.View, without Badger.
package analyze
