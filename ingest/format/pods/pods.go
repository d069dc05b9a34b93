// Package pods reads the pods of a Kubernetes cluster, as `kubectl get pods -A -o json` prints them
// (a v1 List or PodList), and finds the pod of a control group.
package pods

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"iter"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"symbolize/ingest/files"
)

// Pod has the labels of samples.
type Pod struct {
	Namespace string
	Name      string
	// Workload is the controller of the pod with its kind: "deployment/web", "daemonset/agent",
	// "cronjob/night"; of a pod without one, "pod/NAME".
	Workload string
}

// Flag is the value of the flag --pods: a path for Read.
type Flag struct {
	Path string
	*Table
}

// Set, String and Type implement pflag.Value.
func (f *Flag) Set(path string) error { f.Path = path; return nil }

func (f *Flag) String() string { return f.Path }

// Type is the name of the value in help texts.
func (f *Flag) Type() string { return "FILE" }

// Read reads the file that the flag names, if it names one.
func (f *Flag) Read() (err error) {
	if f.Path != "" {
		f.Table, err = Read(f.Path)
	}
	return err
}

// Unused returns why the file of the flag named no control group; "" if it named one, or if there is no
// file.
func (f *Flag) Unused() string {
	switch {
	case f.Table == nil || f.found.Load():
		return ""
	case f.asked.Load():
		return "no pod of the captures is in " + f.Path
	}
	return "--pods names nothing without a label namespace, pod or workload"
}

// Table finds pods by their UID and by the IDs of their containers.
type Table struct {
	uid, container map[string]Pod
	content        hash.Hash
	asked, found   atomic.Bool // by Find
}

// Digest is a text that is equal for tables of equal files; "" for nil.
func (t *Table) Digest() string {
	if t == nil {
		return ""
	}
	return hex.EncodeToString(t.content.Sum(nil))
}

// Read reads a file, or all files of a directory by name, of which later ones override earlier
// ones: the pods of a month are those of its days. An error has the path.
func Read(path string) (*Table, error) {
	t := &Table{uid: make(map[string]Pod), container: make(map[string]Pod),
		content: sha256.New()}
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return t, t.readFile(path)
	}
	err = files.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		return t.readFile(p)
	})
	return t, err
}

func (t *Table) readFile(path string) error {
	f, err := files.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := t.read(io.TeeReader(f, t.content)); err != nil {
		return fmt.Errorf("%s: not the pods of `kubectl get pods -A -o json`: %w",
			path, err)
	}
	return nil
}

// read reads a list of pods, one at a time.
func (t *Table) read(r io.Reader) error {
	dec := json.NewDecoder(r)
	if err := expect(dec, json.Delim('{')); err != nil {
		return err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		if key != "items" {
			var other json.RawMessage
			if err := dec.Decode(&other); err != nil {
				return err
			}
			continue
		}
		if err := expect(dec, json.Delim('[')); err != nil {
			return err
		}
		for dec.More() {
			if err := t.readPod(dec); err != nil {
				return err
			}
		}
		return expect(dec, json.Delim(']'))
	}
	return errors.New("it has no items")
}

func expect(dec *json.Decoder, want json.Token) error {
	at := dec.InputOffset()
	got, err := dec.Token()
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%v at offset %d, expected %v", got, at, want)
	}
	return nil
}

// object has the fields of a pod that are read (v1 core of the Kubernetes API).
type object struct {
	Metadata struct {
		Namespace, Name, UID string
		Labels, Annotations  map[string]string
		OwnerReferences      []owner
	}
	Status struct {
		ContainerStatuses, InitContainerStatuses, EphemeralContainerStatuses []containerStatus
	}
}

type owner struct {
	Kind, Name string
	Controller bool
}

type containerStatus struct {
	ContainerID string
	LastState   struct{ Terminated struct{ ContainerID string } }
}

func (t *Table) readPod(dec *json.Decoder) error {
	at := dec.InputOffset()
	var o object
	if err := dec.Decode(&o); err != nil {
		return fmt.Errorf("the pod at offset %d: %w", at, err)
	}
	m := &o.Metadata
	if m.UID == "" {
		return fmt.Errorf("the object at offset %d has no UID", at)
	}
	pod := Pod{Namespace: m.Namespace, Name: m.Name, Workload: o.workload()}
	t.uid[m.UID] = pod
	// The kubelet names the control groups of static pods by the hash of their files.
	if hash := m.Annotations["kubernetes.io/config.hash"]; hash != "" {
		t.uid[hash] = pod
	}
	for _, c := range slices.Concat(o.Status.ContainerStatuses, o.Status.InitContainerStatuses,
		o.Status.EphemeralContainerStatuses) {
		for _, id := range []string{c.ContainerID, c.LastState.Terminated.ContainerID} {
			if _, digits, _ := strings.Cut(id, "://"); digits != "" { // "containerd://0123…"
				t.container[digits] = pod
			}
		}
	}
	return nil
}

var jobNumber = regexp.MustCompile(`-[0-9]{8,10}$`)

// workload is the controller of a pod. That of a ReplicaSet is not in the pod: its name is the
// ReplicaSet's without the hash of the template, as a Deployment makes them; likewise a Job's with
// the number that a CronJob appends.
func (o *object) workload() string {
	m := &o.Metadata
	i := slices.IndexFunc(m.OwnerReferences, func(r owner) bool { return r.Controller })
	if i < 0 || m.OwnerReferences[i].Kind == "Node" {
		return "pod/" + m.Name
	}
	kind, name := m.OwnerReferences[i].Kind, m.OwnerReferences[i].Name
	switch kind {
	case "ReplicaSet":
		hash := m.Labels["pod-template-hash"]
		if short, ok := strings.CutSuffix(name, "-"+hash); ok && hash != "" {
			kind, name = "Deployment", short
		}
	case "Job":
		if at := jobNumber.FindStringIndex(name); at != nil {
			kind, name = "CronJob", name[:at[0]]
		}
	}
	return strings.ToLower(kind) + "/" + name
}

// groupNames match names in paths of control groups: of pods, of the kubelet's driver cgroupfs
// ("/kubepods/burstable/podUID/ID") and of systemd ("…/kubepods-burstable-podUID_.slice/
// cri-containerd-ID.scope", with _ for - in the UID); the IDs of containers of docker, containerd,
// CRI-O and podman, and the ID of a task of ECS.
type groupNames struct{ pod, container *regexp.Regexp }

var groups = sync.OnceValue(func() *groupNames {
	return &groupNames{
		pod: regexp.MustCompile(
			`pod([0-9a-f]{8}[-_](?:[0-9a-f]{4}[-_]){3}[0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?(?:/|$)`),
		container: regexp.MustCompile(
			`(?:^|[^0-9a-f])([0-9a-f]{64}|[0-9a-f]{32}-[0-9]{6,10})(?:[^0-9a-f]|$)`),
	}
})

// containers yields the IDs of the containers in the path of a control group, the innermost first.
func containers(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for path != "" {
			at := strings.LastIndexByte(path, '/')
			m := groups().container.FindStringSubmatch(path[at+1:])
			if m != nil && !yield(m[1]) {
				return
			}
			path = path[:max(at, 0)]
		}
	}
}

// Container returns the ID of the innermost container in the path of a control group, "" if there is
// none.
func Container(path string) string {
	for id := range containers(path) {
		return id
	}
	return ""
}

// Find returns the pod of the path of a control group. If the path is of a pod that the table lacks,
// the Pod has its UID for a name and nothing else; ok is false if the path is of no pod.
func (t *Table) Find(path string) (pod Pod, ok bool) {
	t.asked.Store(true)
	uid := ""
	if m := groups().pod.FindStringSubmatch(path); m != nil {
		uid = strings.ReplaceAll(m[1], "_", "-")
		if pod, ok := t.uid[uid]; ok {
			t.found.Store(true)
			return pod, true
		}
	}
	for id := range containers(path) {
		if pod, ok := t.container[id]; ok {
			t.found.Store(true)
			return pod, true
		}
	}
	return Pod{Name: uid}, uid != ""
}
