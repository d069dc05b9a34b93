package store

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"

	"symbolize/ingest/decode"
)

// Bounds of the kept loads of one function. A function that calls helpers or reads maps has other
// bytes at each load, for both are addresses in its code; one that does neither has the same bytes
// each time. All of them have the same lines, so a load beyond the limits loses no name.
const (
	MaxImages = 64 // different images of one object
	maxLoads  = 4  // loads with the same image
	// maxVariants is how many that are together.
	MaxVariants = MaxImages * maxLoads
)

// Bounds of the texts of a Variant, in bytes.
const (
	MaxBootID   = 64  // a UUID has 36
	MaxFuncName = 512 // KSYM_NAME_LEN of the kernel
)

// Variant is one load of a JITed function as a capture has it. The function's bytes are part of the
// program's entry, which is kept as a blob: loads of other functions of that program refer to the
// same one.
//
// Of a perf map or a jitdump file it is a piece of the file: Image and Entry are its bytes, Size
// is their number, Func the place of the first in MiB, Program the process, BootID the host if it
// is known, and Load when the file was written, ns since 1970 (indexer.StoredJITFile).
type Variant struct {
	Image BlobID // SHA-256 of the function's code bytes; zero if they were not captured
	Size  uint32 // how many those are
	Entry BlobID // the program's entry, in the form of perf's HEADER_BPF_PROG_INFO
	Func  uint32 // which function of the program it is; 0 is the main one
	BTF   BlobID // the program's BTF; zero if it has none

	BootID  string // of the kernel that ran it; "" if the capture does not have it
	Load    uint64 // when it was loaded, ns of CLOCK_BOOTTIME
	Program uint32 // its id in that boot
	Type    uint32 // BPF_PROG_TYPE_*
	Tag     [8]byte
	FuncTag [8]byte // the function's own; for a main function it may differ from Tag
	Name    string  // of the function, which without BTF its entry has only the head of
}

// compareLoads orders variants by image, then by load. Two variants with equal positions are two
// readings of one load.
func compareLoads(a, b *Variant) int {
	return cmp.Or(bytes.Compare(a.Image[:], b.Image[:]), cmp.Compare(a.BootID, b.BootID),
		cmp.Compare(a.Load, b.Load), cmp.Compare(a.Program, b.Program),
		cmp.Compare(a.Func, b.Func))
}

// CompareVariants is the order of Manifest.Variants.
func CompareVariants(a, b Variant) int {
	return cmp.Or(compareLoads(&a, &b), bytes.Compare(a.Entry[:], b.Entry[:]),
		bytes.Compare(a.BTF[:], b.BTF[:]), bytes.Compare(a.Tag[:], b.Tag[:]),
		bytes.Compare(a.FuncTag[:], b.FuncTag[:]), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Type, b.Type), cmp.Compare(a.Size, b.Size))
}

// MergeVariants returns the union of two lists within the limits, and whether those
// left something out. Of a load that was read twice one reading stays, of each image
// the first loads, and of all images the first. None of these depends on the order of
// coming: a load left out before would be left out again.
func MergeVariants(a, b []Variant) (list []Variant, more bool) {
	all := slices.Concat(a, b)
	slices.SortFunc(all, CompareVariants)
	list = all[:0]
	images, loads := 0, 0
	for i := range all {
		v := all[i]
		if n := len(list); n > 0 && compareLoads(&list[n-1], &v) == 0 {
			continue
		}
		loads++
		if len(list) == 0 || list[len(list)-1].Image != v.Image {
			images, loads = images+1, 1
		}
		if images > MaxImages {
			return slices.Clip(list), true
		}
		if loads > maxLoads {
			more = true
			continue
		}
		list = append(list, v)
	}
	return slices.Clip(list), more
}

// check refuses a variant that no manifest can hold.
func (v *Variant) check() error {
	if len(v.BootID) > MaxBootID || len(v.Name) > MaxFuncName {
		return fmt.Errorf("variant: %w: boot ID of %d bytes, name of %d", ErrTooLarge,
			len(v.BootID), len(v.Name))
	}
	if v.Entry.IsZero() {
		return fmt.Errorf("variant of program %d without an entry", v.Program)
	}
	return nil
}

// appendVariant encodes a variant. Readers skip the bytes after the fields they know.
func appendVariant(b []byte, v *Variant) []byte {
	b = append(append(append(b, v.Image[:]...), v.Entry[:]...), v.BTF[:]...)
	b = append(append(b, v.Tag[:]...), v.FuncTag[:]...)
	for _, n := range [...]uint64{uint64(v.Size), uint64(v.Func), uint64(v.Program),
		uint64(v.Type), v.Load} {
		b = binary.AppendUvarint(b, n)
	}
	return appendString(appendString(b, v.BootID), v.Name)
}

func readVariant(r *decode.Reader) (v Variant) {
	for _, field := range [...][]byte{v.Image[:], v.Entry[:], v.BTF[:], v.Tag[:], v.FuncTag[:]} {
		copy(field, r.Bytes(uint64(len(field))))
	}
	for _, field := range [...]*uint32{&v.Size, &v.Func, &v.Program, &v.Type} {
		*field = uint32(Bounded(r, math.MaxUint32))
	}
	v.Load = r.Uvarint()
	v.BootID = string(r.Bytes(Bounded(r, MaxBootID)))
	v.Name = string(r.Bytes(Bounded(r, MaxFuncName)))
	if r.Err() == nil && v.Entry.IsZero() {
		r.Fail("variant without an entry")
	}
	return v
}

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
