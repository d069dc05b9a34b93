package lookup

import (
	"symbolize/analyze/report"
	"symbolize/store/symtab"
)

// Stored makes the demangled names that tables keep: those of the styles LLVM and JSON in full,
// which take three quarters of the time of looking up many addresses of C++.
func Stored() *symtab.Demangler {
	d := report.NewLLVMDemangler(report.Full)
	return &symtab.Demangler{ID: "llvm full " + report.NamesRevision, Name: d.Uncached}
}
