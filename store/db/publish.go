package db

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"symbolize/store"
)

// Publish makes all that was written so far a generation, which readers that open the store from
// now on see. It does nothing if nothing was written.
func (w *Writer) Publish() error {
	w.writing.Lock()
	defer w.writing.Unlock()
	if w.db == nil {
		return fmt.Errorf("%s: %w", w.path, store.ErrClosed)
	}
	if err := w.flushRows(); err != nil {
		return err
	}
	return w.publish(true)
}

// publishPeriodically publishes if it is time to, at a bounded share of the run.
func (w *Writer) publishPeriodically() error {
	every := w.opts.PublishEvery
	if every == 0 {
		every = DefaultPublishEvery
	}
	if every < 0 || time.Since(w.publishedAt) < max(every, publishShare*w.publishTook) {
		return nil
	}
	if err := w.flushRows(); err != nil {
		return err
	}
	return w.publish(true)
}

// publish closes the database, makes it a generation, and opens a clone of it if reopen is set. On
// an error the database is closed; committed data is kept in db/, and its journal leads the next
// writer through it.
func (w *Writer) publish(reopen bool) error {
	start := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.dirty && reopen {
		w.publishedAt = start
		return nil
	}
	if err := w.shut(); err != nil {
		return fmt.Errorf("closing %s: %w", w.path, err)
	}
	if err := w.seal(); err != nil {
		return fmt.Errorf("publishing %s: %w", w.path, err)
	}
	if reopen {
		if _, err := w.open(); err != nil {
			return err
		}
	}
	w.publishedAt = time.Now()
	w.publishTook = w.publishedAt.Sub(start)
	return nil
}

// seal turns the closed db/ into a generation, or removes it if it has nothing new.
func (w *Writer) seal() error {
	live := filepath.Join(w.path, liveName)
	if !w.dirty && w.gen > 0 {
		return removeTree(live)
	}
	if w.opts.Pulled {
		if err := w.notePulled(live); err != nil {
			return err
		}
	}
	gen, err := publish(w.path, live)
	if err != nil {
		return err
	}
	w.gen, w.dirty = gen, false
	return removeOld(w.path, keptGenerations)
}

// Generation returns the number of the newest generation; 0 if there is none.
func (w *Writer) Generation() uint64 {
	w.writing.Lock()
	defer w.writing.Unlock()
	return w.gen
}

// Close publishes the written data and releases the lock. Only after it returned nil is everything
// on disk. A second Close does nothing.
func (w *Writer) Close() error {
	w.writing.Lock()
	defer w.writing.Unlock()
	if w.lock == nil {
		return nil
	}
	err := w.flushRows()
	if w.db != nil && w.dirty && manySmallLogs(filepath.Join(w.path, liveName)) {
		err = errors.Join(err, w.tidy())
	}
	if w.db != nil {
		err = errors.Join(err, w.publish(false))
	}
	if err == nil {
		w.markMerged()
	}
	err = errors.Join(err, releaseLock(w.lock))
	w.lock = nil
	return err
}
