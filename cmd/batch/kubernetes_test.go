package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"
)

// TestCronJob: as TestKubernetes, for a CronJob of one task.
func TestCronJob(t *testing.T) {
	text, err := os.ReadFile(fixtures + "night/cronjob.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if text, err = sigsyaml.YAMLToJSONStrict(text); err != nil {
		t.Fatal(err)
	}
	var cron batchv1.CronJob
	unknown, err := sigsjson.UnmarshalStrict(text, &cron)
	if err := errors.Join(append(unknown, err)...); err != nil {
		t.Fatal(err)
	}
	if cron.APIVersion != "batch/v1" || cron.Kind != "CronJob" || len(strings.Fields(cron.Spec.Schedule)) != 5 {
		t.Errorf("no CronJob of batch/v1: %s %s, %q", cron.APIVersion, cron.Kind, cron.Spec.Schedule)
	}
	job := batchv1.Job{ObjectMeta: cron.ObjectMeta, Spec: cron.Spec.JobTemplate.Spec}
	for _, problem := range podProblems(&job) {
		t.Error(problem)
	}
	if c := job.Spec.Template.Spec.Containers[0]; c.Resources.Limits.Memory().IsZero() {
		t.Error("no limit of memory")
	}
}

// TestKubernetes: the jobs of the manifest are Indexed Jobs of batch/v1 that an API server accepts:
// no field is unknown or of another type, names are ones, and each volume that is mounted is there.
// It is here because the module at the top does without the libraries of Kubernetes.
func TestKubernetes(t *testing.T) {
	text, err := os.ReadFile(fixtures + "night/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	jobs := 0
	for docs := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text))); ; jobs++ {
		doc := make([]byte, len(text))
		n, err := docs.Read(doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var job batchv1.Job
		text, err := sigsyaml.YAMLToJSONStrict(doc[:n])
		if err != nil {
			t.Fatal(err)
		}
		unknown, err := sigsjson.UnmarshalStrict(text, &job)
		if err := errors.Join(append(unknown, err)...); err != nil {
			t.Errorf("document %d: %v", jobs, err)
			continue
		}
		for _, problem := range problemsOf(&job) {
			t.Errorf("%s: %s", job.Name, problem)
		}
	}
	if jobs != 3 {
		t.Errorf("%d jobs, want 3", jobs)
	}
}

// problemsOf lists the reasons for which an API server would refuse a job, or not run it as one
// task for each index.
func problemsOf(job *batchv1.Job) (problems []string) {
	check := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, problem)
		}
	}
	check(job.APIVersion == "batch/v1" && job.Kind == "Job", "no Job of batch/v1")
	s := &job.Spec
	check(s.CompletionMode != nil && *s.CompletionMode == batchv1.IndexedCompletion, "not Indexed")
	check(s.Completions != nil && s.Parallelism != nil && *s.Parallelism > 0 &&
		*s.Parallelism <= *s.Completions, "no completions, or more tasks at a time than there are")
	return append(problems, podProblems(job)...)
}

// podProblems lists the reasons for which an API server would refuse a job with any number of tasks.
func podProblems(job *batchv1.Job) (problems []string) {
	check := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, problem)
		}
	}
	problems = append(problems, validation.IsDNS1123Subdomain(job.Name)...)
	for key, value := range job.Labels {
		problems = append(problems, validation.IsQualifiedName(key)...)
		problems = append(problems, validation.IsValidLabelValue(value)...)
	}
	s := &job.Spec
	check(s.BackoffLimit != nil && *s.BackoffLimit > 0, "a task that fails is not tried again")
	pod := &s.Template.Spec
	check(pod.RestartPolicy == corev1.RestartPolicyOnFailure || pod.RestartPolicy == corev1.RestartPolicyNever,
		"jobs restart OnFailure or Never")
	check(len(pod.Containers) == 1, "not one container")
	for i := range pod.Containers {
		c := &pod.Containers[i]
		problems = append(problems, validation.IsDNS1123Label(c.Name)...)
		check(c.Image != "" && len(c.Args) > 0, "no image, or no arguments")
		for _, m := range c.VolumeMounts {
			check(slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
				return v.Name == m.Name && v.PersistentVolumeClaim != nil
			}), "no volume "+m.Name)
		}
	}
	return problems
}
