// Package rawdump reads and writes raw dumps of BPF maps, the form in which capture bundles keep
// maps and `symbolize capture` saves them. This comment is the specification.
//
// A dump is a header and pairs of key and value, as bpf(2) gave them, without padding. Numbers in
// the header are little-endian on every machine:
//
//	offset  type     field
//	0       [8]byte  "BPFDUMP\n"
//	8       u32      version: 1, or 2 where the pairs are packed
//	12      u32      size of the header with name and lost counts: where pairs begin
//	16      u32      map id
//	20      u32      map type (enum bpf_map_type)
//	24      u32      map flags
//	28      u32      key size, bytes
//	32      u32      value size, bytes, of one CPU
//	36      u32      depth: frames a value holds, of maps of stacks; else 0
//	40      u32      max entries
//	44      u32      CPUs: values per key; 0 for maps that are not per CPU
//	48      u32      BTF id
//	52      u32      BTF type id of the key
//	56      u32      BTF type id of the value
//	60      u32      byte order of keys and values: 1 little, 2 big
//	64      u64      number of pairs; all ones: as many as follow
//	72      u64      when it was dumped, ns of CLOCK_MONOTONIC
//	80      u32      n: bytes of the name
//	84      u32      m: number of lost counts
//	88      [n]byte  name of the map, padded with zeros to a multiple of 8
//	then m times: u64 count, u32 k, [k]byte cause, padded with zeros to a multiple of 8
//	        of count, k and cause together
//	then, in version 2: u32 packing, u32 zero
//
// Causes are sorted. A pair is the key, then the value; with CPUs ≠ 0 the value is one value per
// CPU, each rounded up to a multiple of 8 bytes, as the kernel copies them. Fields that a later
// version adds are between the header's last field and the pairs, and are stepped over by the
// header's size.
//
// Packed pairs are those that zstd makes little of as they are:
//
//	1  trimmed: blocks of u32 n, 1 to 65,536, the keys of n pairs by columns, the u32 lengths
//	   of their values by columns, and the values without the zeros at their ends, one after
//	   the other. A pair has at most 1 MiB.
//	2  columns: blocks of 65,536 pairs by columns, the last of the rest. A pair, key and
//	   value, has at most 256 bytes.
//
// By columns are the first bytes of all, then the second ones, and so on.
package rawdump
