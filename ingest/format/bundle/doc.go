// Package bundle reads and writes capture bundles: the file that `symbolize capture` writes about a
// host, with the data that resolving needs and perf.data lacks.
//
// This comment is the specification, format version 5. Version 4 has no fields of wakers; version 3
// also has no field state; version 2 also has no field user_time; version 1 also has no fields
// program and kernel_time and no entries proc/PID/program/N/maps. A bundle is written as the oldest
// version that has its fields: without samples as version 1, without the states of threads as
// version 3, without wakers as version 4.
//
// # Container
//
// A bundle is a POSIX tar (ustar; pax headers where a name or number does not fit), compressed with
// zstd, so that `tar -tf` lists it and `zstd -d` unpacks it. An uncompressed tar is read, too. The
// first entry is "manifest.json". The zstd stream begins with a frame that holds only the tar
// header of this entry, so that the first few hundred bytes identify the file; the manifest and
// perf.data end with a block, so that a truncated file keeps them. A reader does not rely on this:
// any tar, packed as one frame or many, is a bundle if its first entry is the manifest.
//
// All entries are regular files with relative names. A writer puts "perf.data" second and the
// others in the order of their names, with mode 0644, owner 0 and the manifest's end, in whole
// seconds of REALTIME, as time of modification: equal contents give equal bytes. A reader accepts
// any order after the manifest, skips directories, and keeps entries with unknown names.
//
// # manifest.json
//
// One JSON object, at most 16 MiB:
//
//	format           5; a reader refuses larger numbers, and reads smaller ones
//	recorder         program and version that wrote it
//	machine          as uname -m prints it: "x86_64", "aarch64"
//	byte_order       "little" or "big": of perf.data and of keys and values in dumps
//	page_size        bytes
//	cpus             possible CPUs: the number of values of a per-CPU key
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
//	recordings       [{path, size, first}] of the perf.data files that the command wrote;
//	                 first is the time of the first sample, by the clock of the recording
//	samples          the samples: see Stacks
//	kernel_omitted   true: of the kernel itself kernel/kallsyms has only _text, _stext
//	                 and _etext; the store on that host had the other symbols
//	entries          [{name, size, sha256}] of all other entries, in their order
//
// perf is perf's own clock, the clock of the records in perf.data unless their event selects
// another one (use_clockid): CLOCK_MONOTONIC, if stacks were sampled. The four readings relate it
// to CLOCK_MONOTONIC, to CLOCK_BOOTTIME (the kernel's clock for load times of programs) and to the
// wall clock. kernel_build_id, text and the time from begin to end identify a boot: a perf.data
// with the same kernel, the same _text and overlapping time was recorded in the same boot.
//
// # Entries
//
//	perf.data             a perf.data file with the side band: KSYMBOL and BPF_EVENT
//	                      records with their sample_id (TID, TIME, CPU), COMM, FORK and
//	                      MMAP2 records of the command's processes, the kernel's
//	                      mapping, and the features HOSTNAME, OSRELEASE, ARCH,
//	                      BUILD_ID, CLOCK_DATA, BPF_PROG_INFO and BPF_BTF; programs
//	                      with xlated_prog_insns, which perf record leaves out
//	kernel/kallsyms       /proc/kallsyms; see kernel_omitted
//	kernel/notes          /sys/kernel/notes
//	kernel/modules.json   modules, see below
//	vdso/BUILDID.so       image of the vdso
//	proc/PID/maps         /proc/PID/maps
//	proc/PID/program/N/maps
//	                      the same for program N of the process, see Stacks
//	proc/PID/perf.map     /tmp/perf-PID.map, found in the process's own root, if it was
//	                      written after the process began
//	proc/PID/jit.dump     the jitdump file, of which the process has mapped a page
//	proc/PID/compiled.json
//	                      describes these two, see below
//	bpf/programs.json     how BPF programs were used: package bpfstats specifies it
//	dumps/NAME            a map, as a raw dump: package rawdump specifies it
//	dumps/maps/ID-NAME/N  the N-th dump, six digits from 000001 on, of a map that was
//	                      dumped at intervals; its BTF is in perf.data. The last dumps of
//	                      a stack map and of its counts are samples, if the manifest has none
//
// modules.json is an array of {name, build_id, addr, size, loaded, unloaded}, sorted by load time
// and address: addr is "0x…"; loaded and unloaded are ns of the clock of perf.data's records, 0 for
// a module loaded before the recording or not unloaded.
//
// compiled.json is an object with "began", the start of the process, "vdso", the address of its
// vdso, "0x…", and "perf_map" and "jit_dump". Each of these has "path", the path of the file as
// seen by the process, with its number in its own namespace, and "written", the last modification.
// Times are ns of REALTIME; unknown fields are absent. Bundles of older recorders have a perf map
// without this entry.
//
// # Stacks
//
// The samples of `capture --stacks` are in three dumps, in forms that other BPF programs use, too.
// The second event of --wall, off-cpu, has three more: off_cpu_stacks and so on.
//
//	dumps/stacks         type 7 (STACK_TRACE), flag 0x20 (BPF_F_STACK_BUILD_ID): user
//	                     stacks, by u32 ID; a value is depth times 32 bytes
//	dumps/kernel_stacks  type 7, without the flag: depth times 8 bytes
//	dumps/counts         type 1 (HASH): key and value have the fields named in the
//	                     manifest; a negative ID is the errno why there is no stack
//
// depth is the depth of the deepest stack; values of other stacks end with zeros. Both dumps of
// stacks are trimmed, and the dump of counts is packed in columns. IDs are numbers in the order of
// the dump, in which stacks with the same callers are adjacent. A build ID in a user frame may come
// from the recorder, which reads files in which the kernel does not find the ID. Code without a
// build ID has an address: the process's mappings then include the line of that code; other lines
// are included only if the process's mappings were recorded for other reasons. Some addresses have
// a special meaning: 0 was in no executable mapping of the process; for 0xffffffffffffff, 2^56 − 1,
// the process ended before its mappings were read; for 2^56 − 3 the mappings of a running process
// could not be read; 2^56 − 2 is ambiguous, as mappings changed meanwhile.
//
// The field program of a count's key numbers the successive programs of a process (by exec) and the
// successive processes with its number, if they have addresses that need their mappings: program 0
// has proc/PID/maps, program N has proc/PID/program/N/maps. It is 0 if the user stack has no such
// address.
//
// The field kernel_time is for kernel stacks with addresses of BPF programs or modules, which are
// loaded and unloaded, so that an address may belong to different functions over time. At the
// sample's time all addresses of the stack had the same contents as at kernel_time, by the clock of
// perf.data's records. It is the time of the last record before the sample, in perf.data or
// modules.json, that affects one of the addresses, so that samples add up; 0 if there was none, and
// for all other stacks; 2^64 − 1 if such a record may have been lost. Without the field (version 1)
// an address is known if only one object ever covered it.
//
// The field user_time is for user stacks with addresses of a process with a jitdump file: the
// sample was recorded at this time, by CLOCK_MONOTONIC, or less than 2^22 ns later, so that the
// records of the file determine the function at an address. It is 0 for all other stacks. Without
// the field (version 2) or a time, an address is known if only one function ever covered it.
//
// The field state is of threads off CPU: prev_state of sched_switch, as Linux has it since 4.14. The
// fields with the prefix waker_ are of the thread that ran when such a thread was woken: its stacks,
// comm, process, program and times as above. waker_by is 1 if that thread woke the other, 2 if an
// interrupt did meanwhile (then only the kernel stack is kept), and 0 if that is unknown.
//
// In the manifest samples is an array, one for each event, of
//
//	event          perf's name: "cpu-clock"
//	unit           of weights: "nanoseconds" or "count"
//	period         weight of a sample; 0: each key has a weight of its own
//	stacks, kernel_stacks, counts
//	               names of the entries
//	key, value     "user_stack_id:0:4,kernel_stack_id:4:4,tgid:8:4,comm:16:16": FIELD:OFFSET:SIZE
//	               in bytes; "0:8": the place of the number of samples in a value
//	weight         the place of the weight; absent if period is not 0
//	files          [{build_id, path}] of files with build IDs in frames, if the recorder
//	               knew their paths, sorted by build ID
//
// lost in the header of dumps/counts has the lost samples, by cause.
//
// # Unfinished
//
// During a recording, and after its recorder was killed, the file is unfinished: a sequence of
// segments, each with the data since the previous one. A segment is a skippable zstd frame followed
// by a packed bundle as specified above, with a manifest that describes only this part:
//
//	offset  type      field
//	0       u32       0x184D2A5E, a skippable frame
//	4       u32       56: the rest of the frame, bytes
//	8       [8]byte   "BUNDSEG\n"
//	16      u32       version: 1
//	20      u32       0
//	24      u64       n: bytes of the packed bundle
//	32      [32]byte  SHA-256 of these bytes
//	64      [n]byte   the packed bundle
//
// Data after the last whole segment was being written and is skipped; a damaged segment before it
// is left out, with a warning. Open reads all segments as one bundle:
//
//   - Begin comes from the first segment, lost counts add up, warnings and missing programs are
//     joined, and the other fields of the manifest come from the last segment;
//   - perf.data has the records of all segments, in their order, and the programs and BTF of all;
//   - stacks and counts of samples are merged: stacks get new numbers, counts of equal keys add up.
//     In segments the stacks are sorted by CompareCallers and numbered from 0, the counts by
//     comm, process and stacks;
//   - mappings of a process that differ between segments belong to different programs: they get
//     new numbers, the newest 0;
//   - of all other entries of one name the last one is used.
//
// When the recording ends, a bundle with this content replaces the unfinished one.
//
// # Damage
//
// A truncated or damaged bundle keeps the entries before the damage; the damaged entry is left out
// and reported in Bundle.Warnings, as are entries with another digest than in the manifest. Without
// a whole manifest a file is not a bundle. All sizes are bounded by the constants in names.go.
package bundle
