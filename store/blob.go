package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"symbolize/buildid"
	"symbolize/ingest/decode"
)

// BlobID names a blob: the SHA-256 of its content. The zero value names none.
type BlobID [32]byte

// IsZero reports whether the ID names no blob.
func (id BlobID) IsZero() bool { return id == BlobID{} }

// String returns the hash in lower-case hexadecimal.
func (id BlobID) String() string { return hex.EncodeToString(id[:]) }

// NewBlobID returns the name of a content.
func NewBlobID(data []byte) BlobID { return sha256.Sum256(data) }

// maxBlob bounds a blob, in bytes. The largest that there can be is the entry of a
// program of a million instructions, with a line for each: about 40 MB.
const maxBlob = 64 << 20

// checkBlob refuses what is no blob.
func checkBlob(data []byte) error {
	if len(data) == 0 {
		return errors.New("blob without content")
	}
	if len(data) > maxBlob {
		return fmt.Errorf("blob: %w: %d bytes, at most %d", ErrTooLarge, len(data), maxBlob)
	}
	return nil
}

func blobKey(id BlobID, piece uint32) []byte {
	b := make([]byte, 0, 1+len(id)+4)
	b = append(append(b, prefixBlob), id[:]...)
	return binary.BigEndian.AppendUint32(b, piece)
}

// PutBlob implements Sink.
func (w *Writer) PutBlob(ctx context.Context, data []byte) (BlobID, error) {
	if err := checkBlob(data); err != nil {
		return BlobID{}, err
	}
	id := NewBlobID(data)
	w.writing.Lock()
	defer w.writing.Unlock()
	if w.db == nil {
		return id, fmt.Errorf("%s: %w", w.path, ErrClosed)
	}
	_, err := w.Blob(id)
	if err == nil {
		return id, nil // whole, so it is the same
	}
	if !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrDamaged) {
		return id, err
	}
	b := &batch{ctx: ctx, w: w}
	if err := b.putBlob(id, data); err != nil {
		return id, err
	}
	return id, b.commit()
}

// putBlob adds the pieces of a blob: zstd frames, before the first of which stands
// how many bytes the blob has.
func (b *batch) putBlob(id BlobID, data []byte) error {
	head := binary.AppendUvarint(nil, uint64(len(data)))
	for piece := uint32(0); len(data) > 0; piece++ {
		n := min(len(data), rawPiece)
		if err := b.put(blobKey(id, piece), compress(head, data[:n])); err != nil {
			return err
		}
		data, head = data[n:], nil
	}
	return nil
}

// Blob implements View.
func (d *database) Blob(id BlobID) ([]byte, error) {
	payload, err := d.get(blobKey(id, 0))
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", id, err)
	}
	r := decode.New("blob", payload, 0, false)
	size := bounded(r, maxBlob)
	frame := r.Bytes(uint64(r.Left()))
	if r.Err() != nil {
		return nil, damaged("blob %s: %v", id, r.Err())
	}
	var data []byte
	for piece := uint32(1); ; piece++ {
		part, err := decompress(frame, min(size-uint64(len(data)), rawPiece))
		if err != nil {
			return nil, damaged("blob %s: %v", id, err)
		}
		data = append(data, part...)
		if uint64(len(data)) == size {
			break
		}
		if frame, err = d.get(blobKey(id, piece)); err != nil {
			return nil, damaged("blob %s: %v", id, err)
		}
	}
	if NewBlobID(data) != id {
		return nil, damaged("blob %s has the content of another", id)
	}
	return data, nil
}

// hasBlob reports whether the beginning of a blob is there.
func (d *database) hasBlob(id BlobID) (bool, error) {
	_, err := d.get(blobKey(id, 0))
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, skipDamage(err)
}

// checkBlobs refuses variants whose blobs are not there: what a manifest names is.
func checkBlobs(list []Variant, have func(BlobID) (bool, error)) error {
	for i := range list {
		for _, id := range list[i].blobs() {
			if ok, err := have(id); err != nil {
				return err
			} else if !ok {
				return fmt.Errorf("blob %s of program %d: %w", id, list[i].Program, ErrNotFound)
			}
		}
	}
	return nil
}

// blobs returns the blobs that a variant names.
func (v *Variant) blobs() []BlobID {
	if v.BTF.IsZero() {
		return []BlobID{v.Entry}
	}
	return []BlobID{v.Entry, v.BTF}
}

// newVariants returns the variants of list that are not in old.
func newVariants(list, old []Variant) []Variant {
	return slices.DeleteFunc(slices.Clone(list), func(v Variant) bool {
		_, ok := slices.BinarySearchFunc(old, v, compareVariants)
		return ok
	})
}

// blobSizes returns how many blobs there are, and the bytes that they take.
func (d *database) blobSizes() (count int, stored int64, err error) {
	err = d.view(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{prefixBlob}})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			key := it.Item().Key()
			if len(key) == 1+len(BlobID{})+4 && binary.BigEndian.Uint32(key[len(key)-4:]) == 0 {
				count++
			}
			stored += it.Item().ValueSize()
		}
		return nil
	})
	return count, stored, err
}

// variants checks what an object's variants are, and notes their blobs.
func (v *VerifyResult) variants(m *Manifest) {
	if list, _ := mergeVariants(m.Variants, nil); len(list) != len(m.Variants) ||
		!slices.IsSortedFunc(m.Variants, compareVariants) {
		v.add(Damage, m.ID, "", "variants are not in order")
	}
	if v.wanted == nil {
		v.wanted = make(map[BlobID]buildid.ID)
	}
	for i := range m.Variants {
		v.Variants++
		for _, id := range m.Variants[i].blobs() {
			if _, ok := v.wanted[id]; !ok {
				v.wanted[id] = m.ID
			}
		}
	}
}

// blobs reads all blobs that variants name, and looks for others.
func (v *VerifyResult) blobs(ctx context.Context, d *database) error {
	ids := slices.SortedFunc(maps.Keys(v.wanted), func(a, b BlobID) int {
		return bytes.Compare(a[:], b[:])
	})
	pieces := make(map[BlobID]uint32, len(ids))
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		v.Blobs++
		data, err := d.Blob(id)
		if err != nil {
			v.add(Damage, v.wanted[id], "", "captured input: %v", err)
		}
		pieces[id] = uint32((len(data) + rawPiece - 1) / rawPiece)
		v.Bytes += int64(len(data))
	}
	for e, err := range d.scan([]byte{prefixBlob}, false) {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if len(e.key) != 1+len(BlobID{})+4 {
			v.add(Damage, buildid.ID{}, "", "key %x names nothing", e.key)
			continue
		}
		n, ok := pieces[BlobID(e.key[1:])]
		if !ok || n > 0 && binary.BigEndian.Uint32(e.key[1+len(BlobID{}):]) >= n {
			v.add(Orphan, buildid.ID{}, "", "%s is in no manifest", keyText(e.key))
		}
	}
	return nil
}
