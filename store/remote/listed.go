package remote

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// Listed returns a Bucket that asks b for single objects' manifests listedAfter times, and from then
// on for the list of all of them, once: a run with many objects sends one request for 1,000
// of them. What others write meanwhile is not in the list.
func Listed(b Bucket) Bucket { return &listed{Bucket: b} }

// listedAfter is how many objects' lists are requested before the list of all is.
const listedAfter = 16

type listed struct {
	Bucket
	mu    sync.Mutex
	asked int
	all   []Entry // all manifests, by key; nil until they were requested
}

// List implements Bucket.
func (l *listed) List(ctx context.Context, prefix string) ([]Entry, error) {
	if !strings.HasPrefix(prefix, manifestDir) || prefix == manifestDir {
		return l.Bucket.List(ctx, prefix)
	}
	l.mu.Lock()
	if l.asked++; l.asked <= listedAfter {
		l.mu.Unlock()
		return l.Bucket.List(ctx, prefix)
	}
	defer l.mu.Unlock()
	if l.all == nil {
		all, err := l.Bucket.List(ctx, manifestDir)
		if err != nil {
			return nil, err
		}
		l.all = append([]Entry{}, all...)
	}
	from, _ := slices.BinarySearchFunc(l.all, prefix, func(e Entry, prefix string) int {
		return strings.Compare(e.Key, prefix)
	})
	to := from
	for to < len(l.all) && strings.HasPrefix(l.all[to].Key, prefix) {
		to++
	}
	return slices.Clone(l.all[from:to]), nil
}
