// Package usage records how often and how long the BPF programs of this host run, and which maps
// they use (Recorder). Linux only.
package usage
