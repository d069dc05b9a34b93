package db

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"symbolize/fixtures/sweep"
	"symbolize/store"
	"symbolize/store/symtab"
)

// killObjects is how many objects the child of the kill test writes.
const killObjects = 40

// killTable returns the table of object n: one in nineteen is large enough to have
// blocks.
func killTable(n int) *symtab.Encoded {
	b := symtab.NewBuilder(symtab.Options{})
	funcs := 5 + n*7
	if n%19 == 0 {
		funcs = 9000
	}
	for i := range funcs {
		b.Add(symtab.Func{Start: addrOf(i), Size: 16, Name: fmt.Sprintf("object_%d_function_%x", n, i*i)})
	}
	return b.Encode()
}

// childWrite indexes as an index run does: objects, then the rows of their directory, a word on
// stdout for each object that is in the store.
func childWrite(path string) error {
	w, err := OpenWriter(context.Background(), path,
		WriterOptions{PublishEvery: time.Millisecond, LockTimeout: forkWait})
	if err != nil {
		return err
	}
	var rows store.DirRows
	for n := range killObjects {
		table := killTable(n)
		c := &store.Contribution{
			Manifest: store.Manifest{ID: testID(n), Machine: 62},
			Sources: []store.NewSource{{
				Info:  store.SourceInfo{Kind: store.Symtab, Producer: 1, Path: fmt.Sprintf("/lib/%d", n)},
				Table: table, Raw: []byte(strings.Repeat("raw ", n*1000)),
			}},
		}
		// Blobs before the manifest that names them; one of them all objects share.
		for _, text := range []string{strings.Repeat("entry ", n*1000+1), "types"} {
			if _, err := w.PutBlob(context.Background(), []byte(text)); err != nil {
				return err
			}
		}
		c.Manifest.Variants = []store.Variant{{
			Entry: store.NewBlobID([]byte(strings.Repeat("entry ", n*1000+1))),
			BTF:   store.NewBlobID([]byte("types")), Program: uint32(n),
		}}
		if err := w.Merge(context.Background(), c); err != nil {
			return err
		}
		fmt.Println(n)
		rows = append(rows, store.PathRow{Name: fmt.Sprintf("%03d", n), ID: testID(n)})
		if n%5 == 4 {
			if err := w.PutDir(fmt.Sprintf("/lib/%d", n/5), rows); err != nil {
				return err
			}
			rows = nil
		}
	}
	return w.Close()
}

func child(t *testing.T, role, path string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), childRole+"="+role, childStore+"="+path)
	cmd.Stderr = os.Stderr
	return cmd
}

// TestKill kills a writer again and again, at any moment. Each time the store opens, verifies, and
// has every object whose Merge had returned; and at the end a run that is let be leads to the
// digest of an undisturbed one.
func TestKill(t *testing.T) {
	t.Parallel()
	quiet := t.TempDir()
	if out, err := child(t, "write", quiet).Output(); err != nil {
		t.Fatalf("undisturbed run: %v\n%s", err, out)
	}
	want := digestOf(t, quiet)

	path := t.TempDir()
	rnd, rounds := sweep.Rand(t), sweep.Most(24, 8)
	have, ended := 0, 0
	for round := range rounds {
		// By progress and by time: at any moment of writing, and of opening too.
		kill := killAt{
			line: rnd.IntN(killObjects + 8), after: time.Duration(rnd.IntN(3000)) * time.Microsecond,
		}
		if round%4 == 0 {
			kill = killAt{after: time.Duration(rnd.IntN(40)) * time.Millisecond}
		}
		last, finished := killedRun(t, path, kill)
		have = max(have, last)
		if finished {
			ended++
		}
		if round%3 == 0 {
			continue // the next writer takes up this one's work, without us
		}
		checkKilled(t, path, have)
		if finished { // begin anew, so that later rounds are killed midway too
			path, have = t.TempDir(), 0
		}
	}
	t.Logf("%d of %d runs ended before they were killed", ended, rounds)
	if out, err := child(t, "write", path).Output(); err != nil {
		t.Fatalf("last run: %v\n%s", err, out)
	}
	if got := digestOf(t, path); got != want {
		t.Errorf("digest %x after kills, %x of an undisturbed run", got, want)
	}
	checkKilled(t, path, killObjects)
}

// killAt is when to kill: so long after so many objects are in.
type killAt struct {
	line  int
	after time.Duration
}

// killedRun starts a writer and kills it. It returns how many objects the writer had reported as
// in, and whether it ended by itself.
func killedRun(t *testing.T, path string, at killAt) (objects int, finished bool) {
	t.Helper()
	cmd := child(t, "write", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for {
		if objects == at.line {
			timer := time.AfterFunc(at.after, func() { cmd.Process.Kill() })
			defer timer.Stop()
		}
		if !lines.Scan() {
			break
		}
		objects++
	}
	return objects, cmd.Wait() == nil
}

// checkKilled opens the store as the next writer does and reads all of it.
func checkKilled(t *testing.T, path string, objects int) {
	t.Helper()
	w, err := OpenWriter(context.Background(), path, WriterOptions{LockTimeout: forkWait})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for n := range objects {
		if ms, err := w.Find(testID(n)); err != nil || len(ms) != 1 || len(ms[0].Sources) != 1 {
			t.Fatalf("object %d of %d that were in: %v, %v", n, objects, ms, err)
		}
	}
	v, err := w.Verify(context.Background())
	if err != nil || !v.Sound() {
		t.Fatalf("verify after a kill: %v, %v", v, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if len(w.Warnings()) > 0 {
		t.Errorf("warnings: %q", w.Warnings())
	}
	r := openTestReader(t, path)
	if v, err := r.Verify(context.Background()); err != nil || !v.Sound() {
		t.Fatalf("verify of the generation: %v, %v", v, err)
	}
	r.Close()
}

func digestOf(t *testing.T, path string) [32]byte {
	t.Helper()
	r := openTestReader(t, path)
	defer r.Close()
	sum, err := r.Digest(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return sum
}
