// Package bpfcall makes system calls of bpf(2) that cilium/ebpf has not, or not without others
// beside them: it shows no array of bpf_prog_info as it is, and each call more between the record
// of a load and the descriptor is time in which the program may go. Linux only.
package bpfcall
