package lookup

import (
	"symbolize/analyze/report"
	"symbolize/store/symtab"
)

// Stored makes the demangled names that tables keep: the full names of the styles LLVM and JSON.
// Demangling costs three quarters of the time of many look-ups in C++.
func Stored() *symtab.Demangler {
	d := report.NewLLVMDemangler(report.Full)
	return &symtab.Demangler{ID: "llvm full " + report.NamesRevision, Name: d.Uncached}
}
