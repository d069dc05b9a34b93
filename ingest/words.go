package ingest

var objectKindText = [...]string{
	ELF: "elf", VDSO: "vdso", Kernel: "kernel", Module: "module", JIT: "jit",
	PerfMap: "perf map", JITDump: "jitdump", Anonymous: "anonymous", Unmapped: "unmapped", Guest: "guest",
	Hypervisor: "hypervisor", NoStack: "no stack",
}

// String returns the kind in lower case, as reports print it.
func (k ObjectKind) String() string {
	if int(k) < len(objectKindText) {
		return objectKindText[k]
	}
	return "unknown"
}

var idSourceText = [...]string{
	IDNone:     "none",
	IDRecorded: "recorded",
	IDSibling:  "recorded for the same file",
	IDByPath:   "listed for the path",
	IDProven:   "file proven the same",
	IDTrusted:  "path trusted",
	IDDerived:  "derived",
}

// String returns the source in words, as reports print it.
func (s IDSource) String() string {
	if int(s) < len(idSourceText) {
		return idSourceText[s]
	}
	return "unknown"
}
