package mapdump

import (
	"fmt"
	"slices"

	"symbolize/ingest/format/rawdump"
)

// facts are the map's properties in a dump or in `bpftool map show`.
type facts struct {
	rawdump.Header
	perCPU bool
}

func (f *facts) lose(cause string) {
	if f.Lost == nil {
		f.Lost = make(map[string]uint64)
	}
	if _, ok := f.Lost[cause]; !ok && len(f.Lost) >= maxCauses {
		cause = "other causes"
	}
	f.Lost[cause]++
}

// maxCauses bounds the number of distinct error texts.
const maxCauses = 64

func (f *facts) set(name, value string) {
	switch name {
	case "type":
		f.Type = TypeNumber(value)
	case "name":
		f.Name = value
	}
}

func (f *facts) number(name string, v uint32) {
	switch name {
	case "id":
		f.MapID = v
	case "type":
		f.Type = v
	case "flags":
		f.Flags = v
	case "bytes_key":
		f.KeySize = v
	case "bytes_value":
		f.ValueSize = v
	case "max_entries":
		f.MaxEntries = v
	case "btf_id":
		f.BTFID = v
	}
}

// types are bpftool's names of map types, by enum bpf_map_type
// (include/uapi/linux/bpf.h).
var types = []string{"unspec", "hash", "array", "prog_array", "perf_event_array", "percpu_hash",
	"percpu_array", "stack_trace", "cgroup_array", "lru_hash", "lru_percpu_hash", "lpm_trie",
	"array_of_maps", "hash_of_maps", "devmap", "sockmap", "cpumap", "xskmap", "sockhash",
	"cgroup_storage", "reuseport_sockarray", "percpu_cgroup_storage", "queue", "stack",
	"sk_storage", "devmap_hash", "struct_ops", "ringbuf", "inode_storage", "task_storage",
	"bloom_filter", "user_ringbuf", "cgrp_storage", "arena", "insn_array"}

// TypeName returns bpftool's name of a map type: enum bpf_map_type without its prefix, "type 99"
// for an unknown one.
func TypeName(t uint32) string {
	if uint64(t) < uint64(len(types)) {
		return types[t]
	}
	return fmt.Sprintf("type %d", t)
}

// TypeNumber is the reverse of TypeName; 0 for an unknown name.
func TypeNumber(name string) uint32 { return uint32(max(0, slices.Index(types, name))) }
