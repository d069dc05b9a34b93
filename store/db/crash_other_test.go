//go:build !linux

package db

import "errors"

// childFill is of tests that fill a disk, which need Linux.
func childFill(string) error { return errors.New("no disk is filled on this system") }

// childCrash is of TestCrash, which needs Linux.
func childCrash(string) error { return errors.New("no power is cut on this system") }

// childLimit is of TestOpenFilesLimit, which needs Linux.
func childLimit(string) error { return errors.New("no limit is set on this system") }
