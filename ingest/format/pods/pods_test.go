package pods

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"symbolize/fixtures/must"
	"symbolize/fixtures/sweep"
)

const (
	webUID    = "8f2b7c1e-0a5d-4c3b-9e6f-112233445566"
	nightUID  = "11111111-2222-3333-4444-555555555555"
	staticUID = "0123456789abcdef0123456789abcdef"
	container = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
)

// list is the output of kubectl for a Deployment's pod, a CronJob's, a static one and one alone.
const list = `{
 "apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""},
 "items": [
  {"kind": "Pod", "metadata": {"namespace": "shop", "name": "web-5d9f8-x2x", "uid": "` + webUID + `",
    "labels": {"pod-template-hash": "5d9f8"},
    "ownerReferences": [{"kind": "ReplicaSet", "name": "web-5d9f8", "controller": true}]},
   "status": {"containerStatuses": [{"containerID": "containerd://` + container + `",
     "lastState": {"terminated": {"containerID": "containerd://` + container + `"}}}]}},
  {"metadata": {"namespace": "shop", "name": "night-29012345-abc", "uid": "` + nightUID + `",
    "ownerReferences": [{"kind": "Other", "name": "x"}, {"kind": "Job", "name": "night-29012345", "controller": true}]}},
  {"metadata": {"namespace": "kube-system", "name": "etcd-host", "uid": "99999999-2222-3333-4444-555555555555",
    "annotations": {"kubernetes.io/config.hash": "` + staticUID + `"},
    "ownerReferences": [{"kind": "Node", "name": "host", "controller": true}]}},
  {"metadata": {"namespace": "default", "name": "shell", "uid": "77777777-2222-3333-4444-555555555555"}}
 ]
}`

func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	must.Write(t, path, []byte(text))
	return path
}

func TestFind(t *testing.T) {
	table, err := Read(write(t, t.TempDir(), "pods.json", list))
	if err != nil {
		t.Fatal(err)
	}
	web := Pod{"shop", "web-5d9f8-x2x", "deployment/web"}
	for _, tt := range []struct {
		name, path string
		want       Pod
		none       bool
	}{
		{name: "cgroupfs", path: "/kubepods/burstable/pod" + webUID + "/" + container, want: web},
		{name: "systemd", path: "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" +
			strings.ReplaceAll(webUID, "-", "_") + ".slice/cri-containerd-" + container + ".scope", want: web},
		{name: "the pod's own group", path: "/kubepods/pod" + webUID, want: web},
		{name: "container alone", path: "/system.slice/docker-" + container + ".scope", want: web},
		{name: "job", path: "/kubepods/besteffort/pod" + nightUID,
			want: Pod{"shop", "night-29012345-abc", "cronjob/night"}},
		{name: "static", path: "/kubepods/pod" + staticUID + "/x",
			want: Pod{"kube-system", "etcd-host", "pod/etcd-host"}},
		{name: "not in the list", path: "/kubepods/pod22222222-2222-3333-4444-555555555555/x",
			want: Pod{Name: "22222222-2222-3333-4444-555555555555"}},
		{name: "no pod", path: "/user.slice", none: true},
		{name: "no path", none: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := table.Find(tt.path)
			if ok == tt.none || got != tt.want {
				t.Errorf("%+v, %v", got, ok)
			}
		})
	}
}

// TestReadDirectory: the files of a directory are read in order, also if a link leads to it.
func TestReadDirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "2026-11-01.json", list)
	write(t, dir, "2026-11-02.json", strings.ReplaceAll(list, `"night-29012345"`, `"once"`))
	write(t, dir, ".hidden", "{")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, link} {
		table, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if pod, _ := table.Find("/kubepods/pod" + nightUID); pod.Workload != "job/once" {
			t.Errorf("%s: %+v", path, pod)
		}
	}
}

// TestTruncated: each beginning of a file is an error with the path, as is a file of another kind.
func TestTruncated(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []int{0, 1, 2, 40, 90, 300, len(list) / 2, len(list) - 5} {
		path := write(t, dir, "pods.json", list[:n])
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	for n := range sweep.Of(sweep.Rand(t), len(list), 200) {
		if _, err := Read(write(t, dir, "pods.json", list[:n])); err == nil && n < strings.LastIndex(list, "]") {
			t.Errorf("%d bytes: no error", n)
		}
	}
	for _, text := range []string{"[]", "null", `{"items": {}}`, `{"items": [1]}`, `{"items": [{}]}`,
		`{"kind": "Pod"}`, `{"items": [{"metadata": {"uid": 7}}]}`} {
		if _, err := Read(write(t, dir, "pods.json", text)); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
	if _, err := Read(filepath.Join(dir, "nosuch")); err == nil {
		t.Error("a missing file: no error")
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(list))
	f.Add([]byte(`{"items":[`))
	f.Fuzz(func(t *testing.T, text []byte) {
		table := &Table{uid: make(map[string]Pod), container: make(map[string]Pod)}
		if table.read(strings.NewReader(string(text))) == nil {
			table.Find("/kubepods/pod" + webUID + "/" + container)
		}
	})
}
