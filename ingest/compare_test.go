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
		{kind: ELF, path: "/bin/x", want: UserDomain}, {kind: VDSO, path: "[vdso]",
			want: UserDomain},
		{kind: Kernel, path: KernelMapName, want: KernelDomain},
		{kind: Module, path: "[ext4]", want: KernelDomain},
		{kind: JIT, path: "bpf_prog_x", want: BPFDomain}, {kind: JIT, path: "bpf_trampoline_1",
			want: BPFDomain},
		{kind: JIT, path: "kprobe_insn_page", want: KernelDomain},
		{kind: PerfMap, want: JITDomain}, {kind: Anonymous, path: AnonymousPath,
			want: JITDomain},
		{kind: Unmapped, path: UnmappedPath, want: UserDomain},
		{kind: Unmapped, path: UnmappedKernelPath, want: KernelDomain},
		{kind: NoStack, path: NoStackPath, want: UserDomain},
		{kind: Hypervisor, path: HypervisorPath, want: KernelDomain},
	} {
		o := Object{Kind: tc.kind, File: FileRef{Path: tc.path}}
		if got := o.Domain(); got != tc.want {
			t.Errorf("%s is in domain %d, want %d", tc.path, got, tc.want)
		}
	}
}
