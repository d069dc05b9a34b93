package db

import (
	"context"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"symbolize/store"
)

// batch gathers entries and commits them in transactions of bounded size. Of two entries with one
// key the later one counts. Within one transaction all or nothing survives a crash; the order of
// transactions is the order of put.
type batch struct {
	ctx     context.Context
	w       *Writer
	entries []*badger.Entry
	vlog    int64 // bytes that go to the value log
	lsm     int64 // bytes that go to the memtable
}

// put adds a value in its envelope. Key and payload are kept until the commit.
func (b *batch) put(key, payload []byte) error {
	return b.add(badger.NewEntry(key, seal(key, payload)))
}

// remove adds a deletion.
func (b *batch) remove(key []byte) error {
	return b.add(&badger.Entry{Key: key})
}

func (b *batch) add(e *badger.Entry) error {
	lsm, vlog := int64(len(e.Key)+entryOverhead), int64(0)
	if len(e.Value) >= valueThreshold {
		vlog = int64(len(e.Key)+len(e.Value)) + entryOverhead
	} else {
		lsm += int64(len(e.Value))
	}
	if b.vlog+vlog+b.lsm+lsm > maxTxn || b.lsm+lsm > maxTxnLSM || len(b.entries) == maxTxnEntries {
		if err := b.commit(); err != nil {
			return err
		}
	}
	b.entries = append(b.entries, e)
	b.lsm, b.vlog = b.lsm+lsm, b.vlog+vlog
	return nil
}

// commit writes the gathered changes. The database must not be closed meanwhile:
// callers hold Writer.writing.
func (b *batch) commit() error {
	if len(b.entries) == 0 {
		return nil
	}
	if err := b.ctx.Err(); err != nil {
		return err
	}
	if err := b.w.space.batch(b.vlog, b.lsm); err != nil {
		return err
	}
	if err := b.w.journal.add(b.entries); err != nil {
		return fmt.Errorf("writing to %s: %w", b.w.path, err)
	}
	txn := b.w.db.NewTransaction(true)
	defer txn.Discard()
	for _, e := range b.entries {
		var err error
		if e.Value == nil {
			err = txn.Delete(e.Key)
		} else {
			err = txn.SetEntry(e)
		}
		if err != nil {
			return fmt.Errorf("key %s: %w", keyText(e.Key), err)
		}
	}
	if err := txn.Commit(); err != nil {
		return fmt.Errorf("writing to %s: %w", b.w.path, err)
	}
	b.w.dirty = true
	clear(b.entries)
	b.entries, b.vlog, b.lsm = b.entries[:0], 0, 0
	return nil
}

// putSources adds the tables and captured inputs that changed, and completes their entries in the
// manifest.
func (b *batch) putSources(next *store.Manifest, changes []store.SourceChange) error {
	for i := range changes {
		ch := &changes[i]
		if ch.WriteTable {
			if err := b.putTable(next, ch); err != nil {
				return err
			}
		}
		if ch.WriteRaw {
			if err := b.putRaw(next, ch); err != nil {
				return err
			}
		}
		if at := store.FindSource(next.Sources, &ch.Info); at >= 0 {
			next.Sources[at] = ch.Info
		}
	}
	return nil
}

// putTable adds the parts of a source's table.
func (b *batch) putTable(m *store.Manifest, ch *store.SourceChange) error {
	prefix := sourcePrefix(prefixTable, m.ID, &ch.Info)
	t := ch.Source.Table
	if err := b.put(tableKey(prefix, partHeader, 0), t.Header); err != nil {
		return err
	}
	if err := b.putParts(prefix, partChunk, t.Chunks, ch.Old.Chunks); err != nil {
		return err
	}
	return b.putParts(prefix, partStrings, t.Strings, ch.Old.Strings)
}

// putParts adds the blocks of one kind, and removes surplus blocks of a longer table that had the
// same key.
func (b *batch) putParts(prefix []byte, part byte, list [][]byte, before uint32) error {
	for i, block := range list {
		if err := b.put(tableKey(prefix, part, uint32(i)), block); err != nil {
			return err
		}
	}
	for i := uint32(len(list)); i < before; i++ {
		if err := b.remove(tableKey(prefix, part, i)); err != nil {
			return err
		}
	}
	return nil
}

// putRaw adds the pieces of a source's captured input and notes them in the info.
func (b *batch) putRaw(m *store.Manifest, ch *store.SourceChange) error {
	prefix := sourcePrefix(prefixRaw, m.ID, &ch.Info)
	raw := ch.Source.Raw
	ch.Info.RawPieces, ch.Info.RawStored = 0, 0
	for len(raw) > 0 {
		n := min(len(raw), store.RawPiece)
		piece := store.Compress(nil, raw[:n])
		if err := b.put(rawKey(prefix, ch.Info.RawPieces), piece); err != nil {
			return err
		}
		ch.Info.RawPieces++
		ch.Info.RawStored += uint64(len(piece))
		raw = raw[n:]
	}
	for i := ch.Info.RawPieces; i < ch.Old.RawPieces; i++ {
		if err := b.remove(rawKey(prefix, i)); err != nil {
			return err
		}
	}
	return nil
}
