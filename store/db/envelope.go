package db

import (
	"encoding/binary"
	"hash/crc32"

	"symbolize/store"
)

// Every value is stored as
//
//	version u8 | payload length LEB128 | payload | CRC-32C, 4 bytes little-endian
//
// with the checksum over key, version, length and payload: a value that a damaged pointer leads to
// is no other key's value either.
const envelopeVersion = 1

// envelopeOverhead bounds an envelope's bytes besides the payload.
const envelopeOverhead = 1 + binary.MaxVarintLen64 + crc32.Size

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal returns the stored form of a payload.
func seal(key, payload []byte) []byte {
	b := make([]byte, 0, len(payload)+envelopeOverhead)
	b = append(b, envelopeVersion)
	b = binary.AppendUvarint(b, uint64(len(payload)))
	b = append(b, payload...)
	return binary.LittleEndian.AppendUint32(b, checksum(key, b))
}

// unseal returns the payload of a stored value, aliasing it. Errors wrap ErrDamaged.
func unseal(key, value []byte) ([]byte, error) {
	if len(value) == 0 {
		// Badger's answer, without an error, when it cannot read a value.
		return nil, store.Damagef("key %s: value is lost", keyText(key))
	}
	if value[0] != envelopeVersion {
		return nil, store.Damagef("key %s: envelope version %d", keyText(key), value[0])
	}
	size, n := binary.Uvarint(value[1:])
	head := 1 + n
	if n <= 0 || len(value) < head+crc32.Size || size != uint64(len(value)-head-crc32.Size) {
		return nil, store.Damagef("key %s: length is not that of the value", keyText(key))
	}
	end := len(value) - crc32.Size
	if got := checksum(key, value[:end]); got != binary.LittleEndian.Uint32(value[end:]) {
		return nil, store.Damagef("key %s: checksum %08x", keyText(key), got)
	}
	return value[head:end:end], nil
}

func checksum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}
