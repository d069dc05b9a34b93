// Package inspect describes files: captures with their events, objects, BPF programs, bundles and
// stack maps; ELF files with their segments and sources of symbols. File reads a description, which
// marshals as JSON and prints as text. Invisible lists the ELF files whose build IDs the kernel
// cannot read, ReadBTF and NewTypes the types in BTF, NewStored an object of the store.
package inspect
