package process

import (
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"
)

// TestLastWords has the ends of processes that ran out of memory or failed in the database
// library, and of others.
func TestLastWords(t *testing.T) {
	for _, tc := range []struct {
		name, in, reason string
		memory           bool
	}{
		{name: "nothing"},
		{name: "asked for", in: "gc 1 @0.014s 3%: 0.023+1.1 ms\n"},
		{
			name: "heap",
			in: "runtime: out of memory: cannot allocate 4194304-byte block\n" +
				"fatal error: out of memory\n\ngoroutine 1 [running]:\nmain.main()\n",
			reason: "runtime: out of memory: cannot allocate 4194304-byte block", memory: true,
		},
		{
			name: "threads",
			in: "runtime/cgo: pthread_create failed: Resource temporarily unavailable\n" +
				"SIGABRT: abort\nPC=0x7fa18e040eec m=0\n",
			reason: "runtime/cgo: pthread_create failed: Resource temporarily unavailable",
			memory: true,
		},
		{
			name: "no memory in the library",
			in: "2026/11/22 11:23:04  err: while opening file: DISCARD\n err: cannot allocate memory\n" +
				"while mmapping db/DISCARD with size: 1048576\n",
			reason: "err: while opening file: DISCARD err: cannot allocate memory while mmapping " +
				"db/DISCARD with size: 1048576",
			memory: true,
		},
		{
			name: "another end by the library", in: "2026/11/22 11:23:04 no table 7\n",
			reason: "no table 7",
		},
		{name: "a fault of ours", in: "panic: index out of range\n\ngoroutine 1 [running]:\n"},
		{
			name: "a fault of the library's",
			in: "panic: runtime error: slice bounds out of range [-18:]\n\ngoroutine 31 [running]:\n" +
				"github.com/dgraph-io/badger/v4/table.(*Table).readIndex()\n",
			reason: "panic: runtime error: slice bounds out of range [-18:]",
		},
		{
			name: "bus error",
			in: "unexpected fault address 0x7f2a4c000000\nfatal error: fault\n" +
				"github.com/dgraph-io/badger/v4.(*memTable).Put()\n" + strings.Repeat("x", maxLastWords),
			reason: "unexpected fault address 0x7f2a4c000000",
		},
		{name: "a line of a library, then an end by itself", in: "2026/11/22 11:23:04 Unsolicited " +
			"response received on idle HTTP channel starting with \"x\"\n" + endNote},
		{name: "an end by itself after much", in: strings.Repeat("x", 2*maxLastWords) + "\n" + endNote},
	} {
		var words lastWords
		for b := range strings.SplitAfterSeq(tc.in, " ") {
			words.Write([]byte(b))
		}
		reason, memory := "", false
		if !words.cutEndNote() {
			reason, memory = words.reason()
		}
		if reason != tc.reason || memory != tc.memory {
			t.Errorf("%s: %q, memory %v", tc.name, reason, memory)
		}
	}
}

// TestWasInterrupted: a child that a signal ends before it has handlers was interrupted.
func TestWasInterrupted(t *testing.T) {
	// Background commands of a shell ignore SIGINT, and so do their children, but not the children
	// of a program that catches it.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, os.Interrupt)
	defer signal.Stop(caught)
	for _, tc := range []struct {
		name, script string
		want         bool
	}{
		{name: "SIGINT", script: "kill -INT $$", want: true},
		{name: "SIGTERM", script: "kill -TERM $$", want: true},
		{name: "SIGKILL", script: "kill -KILL $$"},
		{name: "status 130", script: "exit 130"},
		{name: "done", script: "true"},
	} {
		cmd := exec.Command("sh", "-c", tc.script)
		_ = cmd.Run() // its state is compared
		if got := wasInterrupted(cmd.ProcessState); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}
