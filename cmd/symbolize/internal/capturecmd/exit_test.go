package capturecmd

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"symbolize/cmd/symbolize/internal/cli"
	"symbolize/ingest/record"
)

// TestCaptureExit: the exit status is as of perf record.
func TestCaptureExit(t *testing.T) {
	o := &captureOptions{output: "capture.data"}
	for _, tt := range []struct {
		end  record.CommandStatus
		want int
		says string
	}{
		{end: record.CommandStatus{}, want: cli.OK},
		{end: record.CommandStatus{Stopped: syscall.SIGINT}, want: cli.OK},
		{end: record.CommandStatus{Run: true}, want: cli.OK},
		{end: record.CommandStatus{Run: true, Status: 7}, want: 7, says: "status 7"},
		{end: record.CommandStatus{Run: true, Status: -1, Signal: syscall.SIGSEGV}, want: 139,
			says: "signal 11"},
		{end: record.CommandStatus{Run: true, Status: -1, Signal: syscall.SIGINT,
			Stopped: syscall.SIGINT}, want: cli.Interrupted, says: "signal 2"},
		{end: record.CommandStatus{Run: true, Status: -1, Signal: syscall.SIGTERM, TimeUp: true},
			want: cli.OK},
		{end: record.CommandStatus{Run: true, Status: -1, Signal: syscall.SIGKILL, TimeUp: true,
			Stopped: syscall.SIGINT}, want: 137, says: "signal 9"},
		{end: record.CommandStatus{Run: true, Status: -1}, want: cli.Failed, says: "status -1"},
	} {
		err := commandError(o, &record.Summary{Command: tt.end})
		code, text := cli.OK, ""
		if err != nil {
			text = err.Error()
			var e *cli.ExitError
			if !errors.As(err, &e) {
				t.Fatalf("%+v: %v", tt.end, err)
			}
			code = e.Code
			if !strings.Contains(text, "capture.data is written") {
				t.Errorf("%+v: %q does not say that there is a file", tt.end, text)
			}
		}
		if code != tt.want || !strings.Contains(text, tt.says) {
			t.Errorf("%+v: exit status %d %q, want %d", tt.end, code, text, tt.want)
		}
	}
}

// TestRecordError: each error that keeps a recording from being made has its status and its hint.
func TestRecordError(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code int // 0: as any failure
		hint string
	}{
		{err: fmt.Errorf("%w: %w", record.ErrCommand, fs.ErrNotExist), code: exitNoCommand},
		{err: fmt.Errorf("%w: %w", record.ErrCommand, fs.ErrPermission), code: exitCannotRun},
		{err: fmt.Errorf("%w: %w", record.ErrRights, syscall.EPERM), code: 0, hint: "--check"},
		{err: record.ErrUnsupported, code: 0, hint: "on the Linux host"},
		{err: syscall.ENOSPC, code: 0},
	} {
		err := recordError(tt.err)
		var e *cli.ExitError
		var h interface{ Hint() string }
		if errors.As(err, &e) != (tt.code != 0) || e != nil && e.Code != tt.code ||
			errors.As(err, &h) != (tt.hint != "") || h != nil && !strings.Contains(h.Hint(),
			tt.hint) ||
			!errors.Is(err, tt.err) {
			t.Errorf("%v became %#v", tt.err, err)
		}
	}
}
