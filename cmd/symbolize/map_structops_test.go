//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/fixtures/must"
)

// liveOps registers a congestion control of TCP that is never used.
const liveOps = `#define SEC(n) __attribute__((section(n), used))
struct sock;
struct tcp_congestion_ops {
	unsigned (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, unsigned ack, unsigned acked);
	unsigned (*undo_cwnd)(struct sock *sk);
	char name[16];
} __attribute__((preserve_access_index));
SEC("struct_ops/a") unsigned a(unsigned long long *c) { return 2; }
SEC("struct_ops/b") void b(unsigned long long *c) {}
SEC("struct_ops/c") unsigned c(unsigned long long *c) { return 2; }
SEC(".struct_ops") struct tcp_congestion_ops live_ops = {
	(void *)a, (void *)b, (void *)c, "NAME"};
char LICENSE[] SEC("license") = "GPL";
`

// TestLiveMapStructOps: a struct_ops map prints as bpftool's dump of it, by the kernel's BTF,
// and reports where it has none.
func TestLiveMapStructOps(t *testing.T) {
	needLive(t, "clang", "bpftool")
	dir := t.TempDir()
	source, object := filepath.Join(dir, "ops.bpf.c"), filepath.Join(dir, "ops.bpf.o")
	name := fmt.Sprintf("live%d", os.Getpid())
	text := strings.ReplaceAll(liveOps, "NAME", name)
	must.Write(t, source, []byte(text))
	command(t, dir, "clang", "-g", "-O2", "-target", "bpf", "-c", "-o", object, source)
	out, err := exec.Command("bpftool", "struct_ops", "register", object).CombinedOutput()
	if err != nil {
		t.Skipf("SKIPPED: no struct_ops here: %v: %s", err, out)
	}
	var maps []struct {
		ID   uint32 `json:"id"`
		Type string `json:"type"`
		Name string `json:"name"`
	}
	if err := json.Unmarshal([]byte(command(t, dir, "bpftool", "-j", "map", "list")),
		&maps); err != nil {
		t.Fatal(err)
	}
	id := ""
	for _, m := range maps {
		if m.Type == "struct_ops" && m.Name == "live_ops" {
			id = fmt.Sprint(m.ID)
		}
	}
	t.Cleanup(func() { // the context of the test is cancelled by then
		out, err := exec.Command("bpftool", "struct_ops", "unregister", "id", id).CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	want := command(t, dir, "bpftool", "map", "dump", "id", id)
	data := filepath.Join(dir, "maps.data")
	if code, _, said := runLive(t, "capture", "-o", data, "--maps", id, "--", "true"); code != 0 {
		t.Fatalf("capture: status %d\n%s", code, said)
	}
	code, got, said := runLive(t, "map", "--btf", "/sys/kernel/btf/vmlinux", data)
	if code != 0 || got != want || !strings.Contains(got, `"`+name+`"`) {
		t.Errorf("status %d, %s\n%s", code, said, firstChange(got, want))
	}
	code, got, said = runLive(t, "map", data)
	if code != 0 || !strings.Contains(said, "it has types of the kernel") ||
		!strings.HasPrefix(got, "key:\n") {
		t.Errorf("without the kernel's BTF: status %d, %s\n%s", code, said, got)
	}
}
