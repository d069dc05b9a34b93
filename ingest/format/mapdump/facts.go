package mapdump

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"symbolize/ingest/format/bundle"
)

// facts are what a dump or `bpftool map show` says of the map.
type facts struct {
	bundle.DumpHeader
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

// maxCauses bounds how many texts of errors are kept apart.
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

// types are the kinds of maps as bpftool names them, by enum bpf_map_type
// (include/uapi/linux/bpf.h).
var types = []string{"unspec", "hash", "array", "prog_array", "perf_event_array", "percpu_hash",
	"percpu_array", "stack_trace", "cgroup_array", "lru_hash", "lru_percpu_hash", "lpm_trie",
	"array_of_maps", "hash_of_maps", "devmap", "sockmap", "cpumap", "xskmap", "sockhash",
	"cgroup_storage", "reuseport_sockarray", "percpu_cgroup_storage", "queue", "stack",
	"sk_storage", "devmap_hash", "struct_ops", "ringbuf", "inode_storage", "task_storage",
	"bloom_filter", "user_ringbuf", "cgrp_storage", "arena", "insn_array"}

// TypeName returns a kind of map as bpftool names it: enum bpf_map_type without its
// prefix, "type 99" for one that is not known.
func TypeName(t uint32) string {
	if uint64(t) < uint64(len(types)) {
		return types[t]
	}
	return fmt.Sprintf("type %d", t)
}

// TypeNumber is the reverse of TypeName; 0 for a name that is not known.
func TypeNumber(name string) uint32 { return uint32(max(0, slices.Index(types, name))) }

// ParseShow reads the output of `bpftool map show` with -j or -p: one map, or a list.
// Of each it gives what bpftool tells; BTF type ids are not among it.
func ParseShow(name string, data []byte) ([]bundle.DumpHeader, error) {
	if len(data) > maxShow {
		return nil, fmt.Errorf("%s: %d bytes are more than the %d that are read", name, len(data),
			maxShow)
	}
	var maps []map[string]any
	if strings.HasPrefix(strings.TrimSpace(string(data[:min(len(data), headSize)])), "{") {
		maps = make([]map[string]any, 1)
		if err := json.Unmarshal(data, &maps[0]); err != nil {
			return nil, fmt.Errorf("%s: output of `bpftool -j map show`: %w", name, err)
		}
	} else if err := json.Unmarshal(data, &maps); err != nil {
		return nil, fmt.Errorf("%s: output of `bpftool -j map show`: %w", name, err)
	}
	out := make([]bundle.DumpHeader, 0, len(maps))
	for _, m := range maps {
		var f facts
		for member, v := range m {
			switch v := v.(type) {
			case string:
				f.set(member, v)
			case float64:
				if v >= 0 && v < 1<<32 {
					f.number(member, uint32(v))
				}
			}
		}
		out = append(out, f.DumpHeader)
	}
	return out, nil
}
