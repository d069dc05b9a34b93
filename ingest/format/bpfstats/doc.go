// Package bpfstats is the form in which bundles have how BPF programs were used: how often and
// how long each ran, where it was attached, which maps it has and who holds it.
//
// This comment is the specification of the entry bpf/programs.json. It is one JSON object, of at
// most 64 MiB:
//
//	begin, end  the time over which runs were counted, 0 both if the kernel counted none
//	lost        programs that were left out, beyond the recorder's bound
//	programs    the programs that were there at some time of the recording, sorted by id:
//
//	id          the kernel's number
//	tag         16 hexadecimal digits
//	name        as the kernel cut it, at most 15 bytes
//	type        enum bpf_prog_type
//	uid         user who loaded it
//	loaded      load_time of bpf_prog_info
//	first       begin, or the first reading of a program that was loaded after it
//	last        the last reading, from which its numbers are
//	gone        true: it was unloaded after last
//	runs        runs from begin to last; of a program loaded after begin: all up to last
//	run_ns      time spent in them, likewise
//	missed      runs that recursion prevented, likewise
//	maps        [{id, name, type}], type being enum bpf_map_type; in the program's order
//	attached    [{how, to, link, times}]: see below
//	holders     [{pid, comm, by}]: processes with descriptors of the program ("program"), of a
//	            link to it ("link") or of a perf event that runs it ("perf_event")
//	pins        paths in file systems of type bpf that hold the program or a link to it
//	more        attachments, holders and pins that were left out, beyond the recorder's bound
//
// Times are ns of CLOCK_BOOTTIME, the clock of load_time. Members without a value are left out.
// Readers pass over members that they do not know.
//
// In attached, how is the type of event: libbpf's name of an attach type ("trace_fentry",
// "cgroup_inet_egress", "tcx_ingress"), or "raw_tracepoint", "tracepoint", "kprobe",
// "kretprobe", "uprobe", "uretprobe", "perf_event", "xdp", "tc_ingress", "tc_egress",
// "netfilter". to is the target of the attachment, as text: a tracepoint, a function of the
// kernel, a path with an offset behind "+", a network interface, a directory of cgroups. It is
// absent if it could not be found out. link is the number of the link, absent if there is none;
// several links that differ in their numbers alone, as those of perf events of each CPU, are one
// with their count in times, and the least number.
package bpfstats
