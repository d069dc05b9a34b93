package db

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// Environment of a test binary that was started again as another process.
const (
	childRole  = "STORE_TEST_CHILD" // "write", "hold", "fill", "limit" or "crash"
	childStore = "STORE_TEST_STORE"
)

// forkWait is how long tests wait for the lock of a file that they have closed. A process that another
// test starts meanwhile has all open files, and so the lock, until it runs its program.
const forkWait = time.Minute

func TestMain(m *testing.M) {
	role := os.Getenv(childRole)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := runChild(role, os.Getenv(childStore)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runChild(role, path string) error {
	switch role {
	case "write":
		return childWrite(path)
	case "hold":
		w, err := OpenWriter(context.Background(), path, WriterOptions{})
		if err != nil {
			return err
		}
		fmt.Println("held")
		time.Sleep(time.Minute)
		return w.Close()
	case "limit":
		return childLimit(path)
	case "fill":
		return childFill(path)
	case "crash":
		return childCrash(path)
	}
	return fmt.Errorf("no role %s", strconv.Quote(role))
}
