// Package sys contains the recorder's interfaces to the running kernel: perf events, their rings
// and clocks, BPF programs and maps, fields of kernel structures, CPU lists. Only CPU lists and
// fields work on other systems than Linux.
package sys
