package bpfobj

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"symbolize/ingest/object/bpf"
)

// TestLiveOwnTags loads the programs with cilium/ebpf: for each function without a rewrite
// of the kernel, its own tag is among ours.
func TestLiveOwnTags(t *testing.T) {
	if os.Getenv("SYMBOLIZE_LIVE") == "" {
		t.Skip("SYMBOLIZE_LIVE is not set: loads BPF programs")
	}
	if os.Geteuid() != 0 {
		t.Skip("loading BPF programs needs root")
	}
	for _, name := range []string{"shapes.bpf.o", "count.bpf.o"} {
		spec, err := ebpf.LoadCollectionSpec(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		c, err := ebpf.NewCollection(spec)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		r := readerOf(t, name)
		r.takeExts()
		r.link()
		for _, fn := range r.functions {
			if fn.Program && fn.Count*insnSize > fn.Length {
				checkOwnTags(t, name, ciliumOrder(fn), progTags(t, c.Programs[fn.Name].FD()))
			}
		}
	}
}

// checkOwnTags compares the kernel's tags of the functions of a program with ours.
func checkOwnTags(t *testing.T, object string, list []*function, tags []bpf.Tag) {
	t.Helper()
	if len(tags) != len(list) {
		t.Fatalf("%s: the kernel has %d functions, not %d", object, len(tags), len(list))
	}
	for i, fn := range list {
		has := slices.Contains(fn.OwnTags, tags[i])
		if has != (fn.Rewritten == "") {
			t.Errorf("%s: %s has the own tag %s, computed %v, rewritten %q", object, fn.Name, tags[i],
				fn.OwnTags, fn.Rewritten)
		}
		t.Logf("%s: %s has the own tag %s, computed: %v %s", object, fn.Name, tags[i], has,
			fn.Rewritten)
	}
}

// Offsets in struct bpf_prog_info, and its size.
const (
	infoSize, infoTags, infoTagsAt = 232, 180, 184
)

// progTags reads prog_tags of a program.
func progTags(t *testing.T, fd int) []bpf.Tag {
	t.Helper()
	tags := make([]bpf.Tag, 256)
	var info [infoSize]byte
	binary.NativeEndian.PutUint32(info[infoTags:], uint32(len(tags)))
	binary.NativeEndian.PutUint64(info[infoTagsAt:], uint64(uintptr(unsafe.Pointer(&tags[0]))))
	attr := struct {
		fd, size uint32
		info     unsafe.Pointer
	}{uint32(fd), infoSize, unsafe.Pointer(&info)}
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_OBJ_GET_INFO_BY_FD,
		uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 {
		t.Fatal(errno)
	}
	runtime.KeepAlive(tags)
	return tags[:binary.NativeEndian.Uint32(info[infoTags:])]
}
