package ingest

import (
	"testing"
)

func TestCompareObjects(t *testing.T) {
	base := Object{Kind: ELF, File: FileRef{Path: "/b"}, RefSymbol: "r",
		Symbol: "s", Length: 5,
		PID: 5, Capture: "c"}
	if CompareObjects(&base, &base) != 0 {
		t.Error("an object differs from itself")
	}
	for i, change := range []func(*Object){
		func(o *Object) { o.Kind = VDSO },
		func(o *Object) { o.File.Path = "/c" },
		func(o *Object) { o.RefSymbol = "s" },
		func(o *Object) { o.Symbol = "t" },
		func(o *Object) { o.Length++ },
		func(o *Object) { o.PID++ },
		func(o *Object) { o.Capture = "d" },
		func(o *Object) { o.File.Deleted = true },
		func(o *Object) { o.File.Major++ },
		func(o *Object) { o.File.Minor++ },
		func(o *Object) { o.File.Inode++ },
		func(o *Object) { o.File.Generation++ },
		func(o *Object) { o.Reason = Ambiguous },
	} {
		o := base
		change(&o)
		if CompareObjects(&base, &o) >= 0 || CompareObjects(&o, &base) <= 0 {
			t.Errorf("change %d does not order the objects", i)
		}
	}
}

func TestDomains(t *testing.T) {
	for _, tc := range []struct {
		kind ObjectKind
		path string
		want Domain
	}{
		{ELF, "/bin/x", UserDomain}, {VDSO, "[vdso]", UserDomain},
		{Kernel, KernelMapName, KernelDomain},
		{Module, "[ext4]", KernelDomain},
		{JIT, "bpf_prog_x", BPFDomain}, {JIT, "bpf_trampoline_1",
			BPFDomain},
		{JIT, "kprobe_insn_page", KernelDomain},
		{PerfMap, "", JITDomain}, {Anonymous, AnonymousPath,
			JITDomain},
		{Unmapped, UnmappedPath, UserDomain},
		{Unmapped, UnmappedKernelPath, KernelDomain},
		{NoStack, NoStackPath, UserDomain},
		{Hypervisor, HypervisorPath, KernelDomain},
	} {
		o := Object{Kind: tc.kind, File: FileRef{Path: tc.path}}
		if got := o.Domain(); got != tc.want {
			t.Errorf("%s is in domain %d, want %d", tc.path, got, tc.want)
		}
	}
}
