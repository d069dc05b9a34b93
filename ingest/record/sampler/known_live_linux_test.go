package sampler

import (
	"bytes"
	"fmt"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/ingest/object/elf"
)

// spinSource is a library of one function. Libraries of different NUMBERs differ in a constant, and
// so in the build ID, but in no size.
const spinSource = `__attribute__((visibility("default"))) unsigned long spin(unsigned long n)
{
	volatile unsigned long x = NUMBER;
	while (n--) x = x * 6364136223846793005ul + 1;
	return x;
}
`

// swapSource maps the given files at one address, each in place of the one before, and calls their
// code at an offset.
const swapSource = `#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	unsigned long at = strtoul(argv[1], 0, 0);
	for (int round = 0; round < 3; round++)
		for (int i = 2; i < argc; i++) {
			int fd = open(argv[i], O_RDONLY);
			char *p = mmap((void *)0x10000000, 1 << 16, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0);
			if (p == MAP_FAILED) return 1;
			close(fd);
			((unsigned long (*)(unsigned long))(p + at))(60000000);
		}
	return 0;
}
`

// bySource builds the libraries, and returns the offset of their function, their paths and their
// build IDs.
func bySource(t *testing.T) (at string, paths, ids []string) {
	t.Helper()
	for _, number := range []string{"1", "2"} {
		lib := compile(t, spinSource, "-DNUMBER="+number, "-shared", "-nostdlib", "-fPIC",
			"-Wl,-z,noseparate-code", "-Wl,--build-id")
		data := must.Read(t, lib)
		f, err := elf.Open(lib, bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		values, err := f.Values("spin")
		offset := fmt.Sprintf("%#x", uint64(values["spin"]))
		if err != nil || values["spin"] == 0 || at != "" && offset != at || f.ID.Len() != BuildIDSize {
			t.Fatal(values, err, at, f.ID)
		}
		at, paths, ids = offset, append(paths, lib), append(ids, string(f.ID.Bytes()))
	}
	return at, paths, ids
}

// TestLiveKnownAgain maps one file in place of another: at the addresses of a stack that is
// known there is other code, which must appear with its own build ID. Most stacks of a loop
// are known.
func TestLiveKnownAgain(t *testing.T) {
	must.BeLive(t, "loads BPF programs")
	if readProcessLayout() == nil {
		t.Skip("SKIPPED: this kernel does not count the changes of mappings, or has no BTF")
	}
	at, paths, names := bySource(t)
	swap := compile(t, swapSource)
	s := start(t, Options{Frequency: 999})
	finish(t, s, swap, append([]string{at}, paths...)...)
	s.Stop()
	buf, ids := make([]byte, Depth*userFrame), make(map[string]uint64)
	for k, v := range s.counts.of {
		if string(bytes.TrimRight(s.counts.names[k.comm][:], "\x00")) != "load" || k.user < 0 ||
			!s.tables[userStack].received(k.user) {
			continue
		}
		frames, err := s.tables[userStack].read(k.user, buf)
		if err != nil {
			t.Fatal(err)
		}
		ids[string(frames[frameID:frameOffset])] += v.Count
	}
	first, second := ids[names[0]], ids[names[1]]
	t.Logf("%d and %d samples in the two files; %d of %d stacks were known", first, second,
		s.stat(statKnown), s.Stats().Samples)
	if both := first + second; both < 100 || first*3 < both || second*3 < both {
		t.Errorf("%d and %d samples in files that ran equally long", first, second)
	}
	if s.stat(statKnown) < (first+second)/2 {
		t.Errorf("%d stacks were known, of %d samples in a loop", s.stat(statKnown), first+second)
	}
}
