package bpfprog

import (
	"cmp"
	"errors"
	"fmt"

	"symbolize/buildid"
	"symbolize/ingest/object/bpf"
	"symbolize/ingest/object/btf"
	"symbolize/store"
	"symbolize/store/symtab"
)

// Variant is a load of a JITed function that a view keeps, decoded.
type Variant struct {
	store.Variant
	// Loaded is the program as it was loaded, with its BTF. It aliases the view's
	// blobs.
	Loaded *bpf.Program
	// Probable is set if only name, tag and length match the request: the lines are from a function
	// of another capture, and its source may differ.
	Probable bool
}

// SymbolOf returns the name that the kernel gave a function: "bpf_prog_TAG_NAME".
func SymbolOf(v *store.Variant) string {
	if v.Func > 0 {
		return bpf.SymbolOf(v.FuncTag, v.Name)
	}
	return bpf.SymbolOf(v.Tag, v.Name)
}

// Function returns the function itself: its code, lines and address.
func (v *Variant) Function() *bpf.Func { return &v.Loaded.Funcs[v.Func] }

// Symbol returns the name that the kernel gave the function.
func (v *Variant) Symbol() string { return v.Loaded.Symbol(int(v.Func)) }

// Variants returns the loads of a JITed function that a view keeps: loads of a view in front first,
// otherwise in the order of Manifest.Variants. If the view knows a function only by symbol and
// length, Variants returns the loads of the only matching function, marked as Probable. Unreadable
// loads are left out and reported in the error.
func Variants(view store.View, id buildid.ID) ([]Variant, error) {
	m, _, err := store.FindOne(view, id)
	if m == nil {
		return nil, err
	}
	probable := len(m.Variants) == 0 && len(m.Probable) == 1
	if probable {
		if m, _, err = store.FindOne(view, m.Probable[0]); m == nil {
			return nil, err
		}
	}
	var list []Variant
	var errs []error
	for i := range m.Variants {
		v := Variant{Variant: m.Variants[i], Probable: probable}
		if v.Loaded, err = loaded(view, m, &v.Variant); err != nil {
			errs = append(errs, fmt.Errorf("BPF program %d of %s: %w", v.Program, m.ID, err))
			continue
		}
		list = append(list, v)
	}
	return list, errors.Join(errs...)
}

// loaded reads the program of a variant.
func loaded(view store.View, m *store.Manifest, v *store.Variant) (*bpf.Program, error) {
	entry, err := view.Blob(v.Entry)
	if err != nil {
		return nil, err
	}
	var types []byte
	if !v.BTF.IsZero() {
		if types, err = view.Blob(v.BTF); err != nil {
			return nil, err
		}
	}
	return decodeEntry(m, v, entry, types)
}

// decodeEntry decodes a kept entry with its BTF, nil if there is none.
func decodeEntry(m *store.Manifest, v *store.Variant, entry, types []byte) (*bpf.Program, error) {
	var damaged error
	p, err := bpf.DecodeProgram("entry of program", entry, m.BigEndian,
		func(uint32) (t *btf.Types) {
			if len(types) > 0 {
				t, damaged = btf.Parse("BTF of program", types, nil)
			}
			return t
		})
	if err = cmp.Or(err, damaged); err != nil {
		return nil, err
	}
	if int64(v.Func) >= int64(len(p.Funcs)) {
		return nil, errors.New("the entry has no such function")
	}
	p.Funcs[v.Func].Name = v.Name
	return p, nil
}

// Rebuild makes the table of a JITed function anew from a variant of it, for
// store.RebuildOptions.
func Rebuild(m *store.Manifest, v *store.Variant, entry, types []byte) (
	*symtab.Encoded, error) {
	p, err := decodeEntry(m, v, entry, types)
	if err != nil {
		return nil, err
	}
	return LineTable(p.Symbol(int(v.Func)), &p.Funcs[v.Func])
}

// TypeName returns the name of a BPF program type, as bpftool has it: "xdp". The
// numbers are BPF_PROG_TYPE_* of include/uapi/linux/bpf.h.
func TypeName(t uint32) string {
	if int64(t) < int64(len(programTypes)) {
		return programTypes[t]
	}
	return fmt.Sprintf("type %d", t)
}

var programTypes = [...]string{
	"unspec", "socket_filter", "kprobe", "sched_cls", "sched_act", "tracepoint", "xdp",
	"perf_event", "cgroup_skb", "cgroup_sock", "lwt_in", "lwt_out", "lwt_xmit", "sock_ops",
	"sk_skb", "cgroup_device", "sk_msg", "raw_tracepoint", "cgroup_sock_addr",
	"lwt_seg6local", "lirc_mode2", "sk_reuseport", "flow_dissector", "cgroup_sysctl",
	"raw_tracepoint_writable", "cgroup_sockopt", "tracing", "struct_ops", "ext", "lsm",
	"sk_lookup", "syscall", "netfilter",
}
