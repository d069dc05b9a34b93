package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

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
		{record.CommandStatus{}, exitOK, ""},
		{record.CommandStatus{Stopped: syscall.SIGINT}, exitOK, ""},
		{record.CommandStatus{Run: true}, exitOK, ""},
		{record.CommandStatus{Run: true, Status: 7}, 7, "status 7"},
		{record.CommandStatus{Run: true, Status: -1, Signal: syscall.SIGSEGV}, 139, "signal 11"},
		{record.CommandStatus{Run: true, Status: -1, Signal: syscall.SIGINT,
			Stopped: syscall.SIGINT}, exitInterrupted, "signal 2"},
		{record.CommandStatus{Run: true, Status: -1, Signal: syscall.SIGTERM, TimeUp: true}, exitOK, ""},
		{record.CommandStatus{Run: true, Status: -1, Signal: syscall.SIGKILL, TimeUp: true,
			Stopped: syscall.SIGINT}, 137, "signal 9"},
		{record.CommandStatus{Run: true, Status: -1}, exitFailed, "status -1"},
	} {
		err := commandError(o, &record.Summary{Command: tt.end})
		code, text := exitOK, ""
		if err != nil {
			text = err.Error()
			var e *exitError
			if !errors.As(err, &e) {
				t.Fatalf("%+v: %v", tt.end, err)
			}
			code = e.code
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
		{fmt.Errorf("%w: %w", record.ErrCommand, fs.ErrNotExist), exitNoCommand, ""},
		{fmt.Errorf("%w: %w", record.ErrCommand, fs.ErrPermission), exitCannotRun, ""},
		{fmt.Errorf("%w: %w", record.ErrRights, syscall.EPERM), 0, "--check"},
		{record.ErrUnsupported, 0, "on the Linux host"},
		{syscall.ENOSPC, 0, ""},
	} {
		err := recordError(tt.err)
		var e *exitError
		var h interface{ Hint() string }
		if errors.As(err, &e) != (tt.code != 0) || e != nil && e.code != tt.code ||
			errors.As(err, &h) != (tt.hint != "") || h != nil && !strings.Contains(h.Hint(), tt.hint) ||
			!errors.Is(err, tt.err) {
			t.Errorf("%v became %#v", tt.err, err)
		}
	}
}
