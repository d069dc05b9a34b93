// Package perfevent opens perf events of the running kernel, reads the rings that it writes their
// records into, and reads perf's clock beside others, on Linux.
package perfevent
