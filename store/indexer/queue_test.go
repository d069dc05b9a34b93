package indexer

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"symbolize/ingest/input/container"
)

func contextWithCause(t *testing.T) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return ctx, cancel
}

// work runs n workers until the queue is empty.
func work(q *queue, n int) {
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for {
				task, ok := q.pop()
				if !ok {
					return
				}
				task(nil)
				q.done()
			}
		})
	}
	wg.Wait()
}

func TestQueueRunsAllThatTasksAdd(t *testing.T) {
	q := newQueue()
	var ran atomic.Int64
	var dir func(depth int) func(*fileReader)
	dir = func(depth int) func(*fileReader) {
		return func(*fileReader) {
			ran.Add(1)
			for range 3 {
				q.pushObject(0, func(*fileReader) { ran.Add(1) })
				if depth > 0 {
					q.pushDir(dir(depth - 1))
				}
			}
		}
	}
	q.pushDir(dir(4))
	work(q, 3)
	if want := int64(121 + 3*121); ran.Load() != want {
		t.Errorf("%d tasks ran, want %d", ran.Load(), want)
	}
}

func TestQueueObjectsFirst(t *testing.T) {
	q := newQueue()
	var order []string
	add := func(s string) func(*fileReader) { return func(*fileReader) { order = append(order, s) } }
	q.pushDir(add("dir"))
	q.pushObject(0, add("object"))
	work(q, 1)
	if len(order) != 2 || order[0] != "object" {
		t.Errorf("order %q", order)
	}
}

// TestQueueLargestFirst: a large object that begins last would end alone on one core.
func TestQueueLargestFirst(t *testing.T) {
	q := newQueue()
	var order []uint64
	for _, size := range []uint64{3, 9, 1, 7, 9, 2} {
		q.pushObject(size, func(*fileReader) { order = append(order, size) })
	}
	work(q, 1)
	if want := []uint64{9, 9, 7, 3, 2, 1}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

func TestQueueStops(t *testing.T) {
	q := newQueue()
	q.pushObject(0, func(*fileReader) { q.stop() })
	q.pushDir(func(*fileReader) { t.Error("ran after the stop") })
	work(q, 1)
}

func TestClaims(t *testing.T) {
	var c claims
	key := fileKey{dev: 1, ino: 2}
	first := c.begin(key, "m", true)
	if !first.read || !first.first || first.again {
		t.Fatalf("the first: %+v", first)
	}
	got := make(chan turn)
	go func() { got <- c.begin(key, "z", true) }()
	first.finish(fileResult{skip: "x"})
	if z := <-got; z.read || !z.again || z.res.skip != "x" {
		t.Errorf("a greater path: %+v", z)
	}
	a := c.begin(key, "a", true)
	if !a.read || a.first || !a.again {
		t.Errorf("a smaller path: %+v", a)
	}
	a.finish(fileResult{})
	if d := c.begin(key, "a", false); d.read || d.again {
		t.Errorf("as a debug file: %+v", d)
	}
	if n := c.begin(fileKey{dev: 1}, "a", true); !n.read || !n.first {
		t.Errorf("without inode number: %+v", n)
	}
}

func TestClassify(t *testing.T) {
	tests := []struct {
		name, head string
		named      bool
		want       container.Type
	}{
		{name: "a", head: "\x7fELF\x02\x01\x01", want: container.TypeELF},
		{name: "x.txt", head: "\x7fELF", want: container.TypeELF},
		{name: "a", head: "\x7fEL", want: container.TypeUnknown},
		{name: "a.ko.xz", head: "\xfd7zXZ\x00.", want: container.TypeXZ},
		{name: "a.ko.zst", head: "\x28\xb5\x2f\xfd.", want: container.TypeZstd},
		{name: "a.ko.gz", head: "\x1f\x8b\x08", want: container.TypeGzip},
		{name: "a.1.gz", head: "\x1f\x8b\x08", want: container.TypeUnknown},
		{name: "a.1.gz", head: "\x1f\x8b\x08", named: true, want: container.TypeGzip},
		{name: "kallsyms", head: "ffffffff81000000 T _text\n", want: container.TypeKallsyms},
		{name: "System.map", head: "ffffffff81000000 T _text\n", want: container.TypeUnknown},
		{name: "System.map", head: "ffffffff81000000 T _text\n", named: true,
			want: container.TypeKallsyms},
		{name: "kallsyms", head: "c0100000 T _text\n", want: container.TypeKallsyms},
		{name: "kallsyms", head: "#!/bin/sh\n", want: container.TypeUnknown},
		{name: "kallsyms", head: "deadbeef\n", want: container.TypeUnknown},
		{name: "kallsyms", head: "notahexa T _text\n", want: container.TypeUnknown},
		{name: "empty", named: true, want: container.TypeUnknown},
	}
	for _, tt := range tests {
		if got := classify(tt.name, []byte(tt.head), tt.named); got != tt.want {
			t.Errorf("%s %q named %v: %d, want %d", tt.name, tt.head, tt.named, got, tt.want)
		}
	}
}
