package sys

// TracingDirs are the directories where tracefs is mounted.
var TracingDirs = [...]string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}
