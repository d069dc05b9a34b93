package store

import (
	"fmt"

	"symbolize/buildid"
)

// SchemaVersion is the version of keys and values, and of the directory. A store of a newer one is
// refused with ErrVersion; those of older ones are read, and become ones of this version with the
// next generation. 2 brought sources of kind JIT, variants and blobs, which programs of version 1
// would take for damage and drop.
const SchemaVersion = 2

// CheckSchema refuses a schema that is newer than SchemaVersion, of the store or archive at path.
func CheckSchema(path string, schema int) error {
	if schema <= SchemaVersion {
		return nil
	}
	return fmt.Errorf("%s: %w: schema %d, this program knows %d", path, ErrVersion, schema,
		SchemaVersion)
}

// ObjectName is the name of an object in archives and lists: SPACE-HEX of its build ID.
func ObjectName(id buildid.ID) string { return id.Space().String() + "-" + id.Hex() }
