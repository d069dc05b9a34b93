package db

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"symbolize/buildid"
	"symbolize/ingest/decode"
	"symbolize/store"
)

func blobKey(id store.BlobID, piece uint32) []byte {
	b := make([]byte, 0, 1+len(id)+4)
	b = append(append(b, prefixBlob), id[:]...)
	return binary.BigEndian.AppendUint32(b, piece)
}

// PutBlob implements Sink.
func (w *Writer) PutBlob(ctx context.Context, data []byte) (store.BlobID, error) {
	if err := store.CheckBlob(data); err != nil {
		return store.BlobID{}, err
	}
	id := store.NewBlobID(data)
	w.writing.Lock()
	defer w.writing.Unlock()
	if w.db == nil {
		return id, fmt.Errorf("%s: %w", w.path, store.ErrClosed)
	}
	_, err := w.Blob(id)
	if err == nil {
		return id, nil // whole, so it is the same
	}
	if !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrDamaged) {
		return id, err
	}
	b := &batch{ctx: ctx, w: w}
	if err := putBlob(b, id, data); err != nil {
		return id, err
	}
	return id, b.commit()
}

// putBlob adds the pieces of a blob: zstd frames, the first preceded by the size of the blob.
func putBlob(to target, id store.BlobID, data []byte) error {
	head := binary.AppendUvarint(nil, uint64(len(data)))
	for piece := uint32(0); len(data) > 0; piece++ {
		n := min(len(data), store.RawPiece)
		if err := to.put(blobKey(id, piece), store.Compress(head, data[:n])); err != nil {
			return err
		}
		data, head = data[n:], nil
	}
	return nil
}

// Blob implements View.
func (d *database) Blob(id store.BlobID) ([]byte, error) {
	payload, err := d.get(blobKey(id, 0))
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", id, err)
	}
	r := decode.New("blob", payload, 0, false)
	size := store.Bounded(r, store.MaxBlob)
	frame := r.Bytes(uint64(r.Left()))
	if r.Err() != nil {
		return nil, store.Damagef("blob %s: %v", id, r.Err())
	}
	var data []byte
	for piece := uint32(1); ; piece++ {
		part, err := store.Decompress(frame, min(size-uint64(len(data)), store.RawPiece))
		if err != nil {
			return nil, store.Damagef("blob %s: %v", id, err)
		}
		data = append(data, part...)
		if uint64(len(data)) == size {
			break
		}
		if frame, err = d.get(blobKey(id, piece)); err != nil {
			return nil, store.Damagef("blob %s: %v", id, err)
		}
	}
	if store.NewBlobID(data) != id {
		return nil, store.Damagef("blob %s has the content of another", id)
	}
	return data, nil
}

// hasBlob reports whether the beginning of a blob is there.
func (d *database) hasBlob(id store.BlobID) (bool, error) {
	_, err := d.get(blobKey(id, 0))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, skipDamage(err)
}

// blobSizes returns the number of blobs and their bytes.
func (d *database) blobSizes() (count int, stored int64, err error) {
	err = d.view(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{prefixBlob}})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			key := it.Item().Key()
			if len(key) == 1+len(store.BlobID{})+4 && binary.BigEndian.Uint32(key[len(key)-4:]) == 0 {
				count++
			}
			stored += it.Item().ValueSize()
		}
		return nil
	})
	return count, stored, err
}

// variants checks an object's variants, and notes their blobs.
func (v *VerifyResult) variants(m *store.Manifest) {
	if list, _ := store.MergeVariants(m.Variants, nil); len(list) != len(m.Variants) ||
		!slices.IsSortedFunc(m.Variants, store.CompareVariants) {
		v.add(Damage, m.ID, "", "variants are not in order")
	}
	if v.wanted == nil {
		v.wanted = make(map[store.BlobID]buildid.ID)
	}
	for i := range m.Variants {
		v.Variants++
		for _, id := range m.Variants[i].Blobs() {
			if _, ok := v.wanted[id]; !ok {
				v.wanted[id] = m.ID
			}
		}
	}
}

// blobs reads all blobs that variants name, and looks for others.
func (v *VerifyResult) blobs(ctx context.Context, d *database) error {
	ids := slices.SortedFunc(maps.Keys(v.wanted), func(a, b store.BlobID) int {
		return bytes.Compare(a[:], b[:])
	})
	pieces := make(map[store.BlobID]uint32, len(ids))
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		v.Blobs++
		data, err := d.Blob(id)
		if err != nil {
			v.add(Damage, v.wanted[id], "", "captured input: %v", err)
		}
		pieces[id] = uint32((len(data) + store.RawPiece - 1) / store.RawPiece)
		v.Bytes += int64(len(data))
	}
	for e, err := range d.scan([]byte{prefixBlob}, false) {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if len(e.key) != 1+len(store.BlobID{})+4 {
			v.add(Damage, buildid.ID{}, "", "key %x names nothing", e.key)
			continue
		}
		n, ok := pieces[store.BlobID(e.key[1:])]
		if !ok || n > 0 && binary.BigEndian.Uint32(e.key[1+len(store.BlobID{}):]) >= n {
			v.add(Orphan, buildid.ID{}, "", "%s is in no manifest", keyText(e.key))
		}
	}
	return nil
}
