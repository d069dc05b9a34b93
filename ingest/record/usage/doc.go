// Package usage finds out how the BPF programs of this host are used: where they are attached,
// which processes hold them, where they are pinned, and how often and how long they run
// (Recorder). Linux only.
//
// The kernel has no list of that. Links are listed by it; programs that are attached in older
// ways are found by asking the places where they can be: control groups, network interfaces
// (of this network namespace), perf events of processes. Where a socket has a program
// (SO_ATTACH_BPF) nobody can ask.
package usage
