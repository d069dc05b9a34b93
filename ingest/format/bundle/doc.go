// Package bundle reads and writes capture bundles: the one file that `symbolize
// capture` leaves of a host, with all that resolving needs and perf.data lacks.
//
// This comment is the specification, format version 3. Version 2 has no field user_time, version 1
// also no field program, no field kernel_time and no entries proc/PID/program/N/maps; bundles without
// samples are written as it.
//
// # Container
//
// A bundle is a POSIX tar (ustar; pax headers where a name or number does not fit), compressed with
// zstd, so that `tar -tf` lists it and `zstd -d` unpacks it. The tar itself, uncompressed, is read
// too. The first entry is "manifest.json"; the zstd stream begins with a frame that holds this
// entry's tar header and nothing else, so that the first few hundred bytes of the file identify it;
// the manifest and perf.data end with a block, so that a file that is cut off keeps them. A reader
// does not rely on that: any tar, packed as one frame or many, is a bundle if its first entry is
// the manifest.
//
// All entries are regular files with relative names. A writer puts "perf.data" second and the
// others in the order of their names, with mode 0644, owner 0 and the manifest's end, in whole
// seconds of REALTIME, as time of modification: equal contents give equal bytes. A reader accepts
// any order behind the manifest, steps over directories, and keeps entries whose names it does not
// know.
//
// # manifest.json
//
// One JSON object, at most 16 MiB:
//
//	format           3; a reader refuses larger numbers, and reads smaller ones
//	recorder         program and version that wrote it
//	machine          as uname -m prints it: "x86_64", "aarch64"
//	byte_order       "little" or "big": of perf.data and of keys and values in dumps
//	page_size        bytes
//	cpus             possible CPUs, which is how many values a per-CPU key has
//	host             host name
//	boot_id          /proc/sys/kernel/random/boot_id
//	os_release       uname -r
//	kernel_build_id  hexadecimal, of /sys/kernel/notes
//	text             run-time address of _text, "0x…"; "0x0" if it was hidden
//	begin, end       {perf, monotonic, boottime, realtime}: ns, read together
//	lost             counts by cause of data that could not be recorded
//	missing          [{id, symbol, reason}] of the BPF programs without recorded
//	                 code: symbol is the kernel's name, reason why; sorted by id
//	warnings         further remarks, as text
//	command          the command that was run, as arguments
//	samples          the samples: see Stacks
//	kernel_omitted   true: kernel/kallsyms has of the kernel itself only _text, _stext
//	                 and _etext, as the store on that host had its symbols
//	entries          [{name, size, sha256}] of all other entries, in their order
//
// perf is perf's own clock. It is that of the records in perf.data, unless their event names
// another (use_clockid): CLOCK_MONOTONIC, where stacks were sampled. The four readings match it
// with CLOCK_MONOTONIC, with CLOCK_BOOTTIME (the kernel's clock of load times of programs) and to
// the wall clock. kernel_build_id, text and the time from begin to end are the fingerprint of a
// boot: a perf.data with the same kernel, the same _text and a time in common was recorded in the
// same boot.
//
// # Entries
//
//	perf.data             a perf.data file with the side band: KSYMBOL and BPF_EVENT
//	                      records with their sample_id (TID, TIME, CPU), the kernel's
//	                      mapping, and the features HOSTNAME, OSRELEASE, ARCH,
//	                      BUILD_ID, CLOCK_DATA, BPF_PROG_INFO and BPF_BTF
//	kernel/kallsyms       /proc/kallsyms; see kernel_omitted
//	kernel/notes          /sys/kernel/notes
//	kernel/modules.json   modules, see below
//	vdso/BUILDID.so       image of the vdso
//	proc/PID/maps         /proc/PID/maps
//	proc/PID/program/N/maps
//	                      that of program N of the process, see Stacks
//	proc/PID/perf.map     /tmp/perf-PID.map, found in the process's own root, if it was
//	                      written after the process began
//	proc/PID/jit.dump     the jitdump file of which the process has mapped a page
//	proc/PID/compiled.json
//	                      facts about these two, see below
//	bpf/programs.json     how BPF programs were used: package bpfstats specifies it
//	dumps/NAME            a map, as a raw dump: package rawdump specifies it
//	dumps/maps/ID-NAME/N  the N-th dump, six digits from 000001 on, of a map that was
//	                      dumped at intervals; its BTF is in perf.data
//
// modules.json is an array of {name, build_id, addr, size, loaded, unloaded}, sorted by load time
// and address: addr is "0x…", loaded and unloaded are ns of the clock of perf.data's records, 0 for
// a module that was there before or that stayed.
//
// compiled.json is an object with "began", when the process began, "vdso", where its vdso lies,
// "0x…", and "perf_map" and "jit_dump", of which each has "path", where the process has the file,
// by the number that it has in its own namespace, and "written", when it was last. Times are ns
// of REALTIME; a field that is not known is absent. Bundles of older recorders have a perf map
// without these facts.
//
// # Stacks
//
// The samples of `capture --stacks` are in three dumps, in the forms that BPF programs of
// others leave too:
//
//	dumps/stacks         type 7 (STACK_TRACE), flag 0x20 (BPF_F_STACK_BUILD_ID): the
//	                     user's stacks, by u32 id; a value is depth times 32 bytes
//	dumps/kernel_stacks  type 7, without the flag: depth times 8 bytes
//	dumps/counts         type 1 (HASH): key and value have the fields that the manifest
//	                     names, a negative id being the errno with which no stack was taken
//
// depth is that of the deepest stack, and values of others end with zeros; both dumps of stacks are
// trimmed, that of counts lies in columns. The ids are numbers in the order of the dump, in which
// stacks with the same callers lie side by side. A user's frame with a build ID need not have had
// it from the kernel: the recorder looks into files in which the kernel does not see it. An address
// stays where code has no build ID: the process's mappings then have that code's line, and other
// lines only of processes whose mappings were wanted anyway. Address 0 was outside of all that the
// process could run, and 0xffffffffffffff, 2^56 − 1, is an unknown one: the process had ended
// before its mappings could be read; 2^56 − 3 likewise: they could not be read though the process
// lived. 2^56 − 2 is one that mappings explain in two ways, as they changed meanwhile.
//
// The field program of a count's key numbers the programs that a process ran one after another by
// exec, and the processes that had its number one after another, as far as they have addresses
// that their mappings are needed for: those of program 0 are proc/PID/maps, those of program
// N proc/PID/program/N/maps. It is 0 where the user's stack has no such address.
//
// The field kernel_time is for kernel's stacks with addresses of BPF programs or modules, which
// come and go, so that an address may be one function now and another later: at the sample's time
// all addresses of the stack had the same contents as at this time, by the clock of perf.data's
// records. It is the time of the last record before the sample, of perf.data or of modules.json,
// that touches one of the addresses, so that samples add up; 0 if there was none, as for all other
// stacks; 2^64 − 1 if such a record may have been lost. Without the field (version 1) an
// address is known if only one object ever covered it.
//
// The field user_time is for user's stacks with addresses of a process that has a jitdump file: the
// sample was taken at this time, by CLOCK_MONOTONIC, or less than 2^22 ns after it. The records of
// that file then have the function that was at an address. It is 0 for all other stacks. Without the
// field or a time (version 2) an address is known if only one function ever covered it.
//
// In the manifest samples is an array, one for each event, of
//
//	event          as perf names it: "cpu-clock"
//	unit           of weights: "nanoseconds" or "count"
//	period         weight of a sample; 0: each key has a weight of its own
//	stacks, kernel_stacks, counts
//	               names of the entries
//	key, value     "user_stack_id:0:4,kernel_stack_id:4:4,tgid:8:4,comm:16:16": FIELD:OFFSET:SIZE
//	               in bytes; "0:8": where in a value the number of samples is
//	weight         likewise of the weight; absent if period has it
//	files          [{build_id, path}] of files whose build IDs are in frames, where the
//	               recorder knew their paths,
//	               sorted by build ID
//
// lost of the header of dumps/counts has the lost samples, by cause.
//
// # Unfinished
//
// While a recording goes on, and when its recorder was killed, the file is unfinished: one
// segment after another, each with the data since the one before it. A segment is a frame
// of zstd that is to be skipped, and behind it a bundle, packed, as specified above, whose
// manifest speaks of this part alone:
//
//	offset  type      field
//	0       u32       0x184D2A5E, a skippable frame
//	4       u32       56: bytes that follow in it
//	8       [8]byte   "BUNDSEG\n"
//	16      u32       version: 1
//	20      u32       0
//	24      u64       n: bytes of the packed bundle
//	32      [32]byte  SHA-256 of these
//	64      [n]byte   the packed bundle
//
// Data behind the last whole segment was being written and is skipped; a damaged
// segment before it is left out, with a warning. Open reads all segments as one bundle. Of it
//
//   - Begin is the first segment's, lost counts add up, warnings and missing programs are those
//     of all, and the other fields of the manifest are the last segment's;
//   - perf.data has the records of all, in their order, and the programs and BTF of all;
//   - stacks and counts of samples are merged: stacks get new numbers, counts of one key add up.
//     In segments the stacks are sorted by CompareCallers and numbered from 0, the counts by
//     comm, process and stacks;
//   - mappings of a process that differ between segments are those of different programs of it:
//     they get new numbers, the newest 0;
//   - of all other entries of one name the last counts.
//
// When the recording ends, a bundle of this content takes the place of the unfinished one.
//
// # Damage
//
// A bundle that is cut off or damaged keeps the entries before the damage; the entry in which it
// lies is left out, and Bundle.Warnings report it. So does an entry whose digest is not the
// manifest's. Without a whole manifest there is no bundle. All sizes are bounded by the constants
// in limits.go.
package bundle
