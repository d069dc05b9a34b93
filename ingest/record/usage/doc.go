// Package usage finds out how the BPF programs of this host are used: where they are attached and
// pinned, which processes hold them, and how often and how long they run (Recorder). Linux only.
//
// The kernel has no such list. It lists links; programs attached in older ways are found by
// querying all possible places: control groups, network interfaces (of this network namespace) and
// perf events of processes. Programs of sockets (SO_ATTACH_BPF) cannot be queried.
package usage
