package indexer

// fileKind is the type of a directory entry.
type fileKind uint8

const (
	kindOther fileKind = iota // devices, sockets and pipes
	kindFile
	kindDir
	kindLink
	kindUnknown // the file system does not report it: stat does
)

// fileStat is the part of a file's stat that a path row keeps.
type fileStat struct {
	kind     fileKind
	dev, ino uint64
	size     uint64 // bytes
	mtime    int64  // ns since 1970
	ctime    int64  // likewise
}

// fileKey identifies a file by its inode, independent of its path.
type fileKey struct{ dev, ino uint64 }

func (s *fileStat) key() fileKey { return fileKey{s.dev, s.ino} }

// dirEntry is one entry of a directory.
type dirEntry struct {
	name string
	kind fileKind
}
