package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
)

// BlobID names a blob: the SHA-256 of its content. The zero value names none.
type BlobID [32]byte

// IsZero reports whether the ID names no blob.
func (id BlobID) IsZero() bool { return id == BlobID{} }

// String returns the hash in lower-case hexadecimal.
func (id BlobID) String() string { return hex.EncodeToString(id[:]) }

// NewBlobID returns the name of a content.
func NewBlobID(data []byte) BlobID { return sha256.Sum256(data) }

// MaxBlob bounds a blob, in bytes. The largest that there can be is the entry of a
// program of a million instructions, with a line for each: about 40 MB.
const MaxBlob = 64 << 20

// CheckBlob refuses invalid blobs.
func CheckBlob(data []byte) error {
	if len(data) == 0 {
		return errors.New("blob without content")
	}
	if len(data) > MaxBlob {
		return fmt.Errorf("blob: %w: %d bytes, at most %d", ErrTooLarge, len(data), MaxBlob)
	}
	return nil
}

// CheckBlobs refuses variants with absent blobs: a manifest names only stored ones.
func CheckBlobs(list []Variant, have func(BlobID) (bool, error)) error {
	for i := range list {
		for _, id := range list[i].Blobs() {
			if ok, err := have(id); err != nil {
				return err
			} else if !ok {
				return fmt.Errorf("blob %s of program %d: %w", id, list[i].Program, ErrNotFound)
			}
		}
	}
	return nil
}

// Blobs returns the blobs that a variant names.
func (v *Variant) Blobs() []BlobID {
	if v.BTF.IsZero() {
		return []BlobID{v.Entry}
	}
	return []BlobID{v.Entry, v.BTF}
}

// NewVariants returns the variants of list that are not in old.
func NewVariants(list, old []Variant) []Variant {
	return slices.DeleteFunc(slices.Clone(list), func(v Variant) bool {
		_, ok := slices.BinarySearchFunc(old, v, CompareVariants)
		return ok
	})
}
