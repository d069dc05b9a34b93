// Package dirs reads directories and the stat of files as the walk of an index run does it: by
// descriptors, so that a path is resolved once. Elsewhere than on Linux it works by paths, and
// there are no inode numbers.
package dirs

// Kind is the type of a directory entry.
type Kind uint8

// The kinds of entries; Other is for devices, sockets and pipes.
const (
	Other Kind = iota
	File
	Dir
	Link
	Unknown // the file system does not report it: Stat does
)

// Stat is the part of a file's stat that a path row keeps.
type Stat struct {
	Kind     Kind
	Dev, Ino uint64
	Size     uint64 // bytes
	Mtime    int64  // ns since 1970
	Ctime    int64  // likewise
}

// Key names a file independent of its path.
type Key struct{ Dev, Ino uint64 }

// Key returns the file's key.
func (s *Stat) Key() Key { return Key{s.Dev, s.Ino} }

// Entry is one entry of a directory.
type Entry struct {
	Name string
	Kind Kind
}
