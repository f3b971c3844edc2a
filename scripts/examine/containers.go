package examine

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"example.com/operator-workshop/scripts/examine/clock"
)

// initTime limits the run of an init container.
const initTime = time.Minute

// isSidecar reports whether an init container runs as long as the pod does.
func isSidecar(c corev1.Container) bool {
	return ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
}

// hasProgram reports whether a container runs the examined program: it has the image and the command of the main
// container.
func (w *workload) hasProgram(c corev1.Container) bool {
	return c.Image == w.container.Image && slices.Equal(c.Command, w.container.Command)
}

// initContainers are the init containers that the lab runs before the program.
func (w *workload) initContainers() (all []corev1.Container) {
	for _, c := range w.template.Spec.InitContainers {
		if !isSidecar(c) && w.hasProgram(c) {
			all = append(all, c)
		}
	}
	return all
}

// leftOut returns a sentence about each part of the pod that the lab leaves out, and about the other workloads.
func (w *workload) leftOut() []string {
	if w == nil {
		return nil
	}
	all := []string{w.leftOutContainers(), w.leftOutVolumes(), w.leftOutWorkloads()}
	return slices.DeleteFunc(all, func(sentence string) bool { return sentence == "" })
}

// leftOutContainers returns a sentence about the containers that the lab does not run, if there are any.
func (w *workload) leftOutContainers() string {
	var names []string
	for _, c := range slices.Concat(w.template.Spec.InitContainers, w.template.Spec.Containers) {
		isInit := slices.ContainsFunc(w.initContainers(), func(i corev1.Container) bool { return i.Name == c.Name })
		if c.Name != w.container.Name && !isInit {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("Of the pod, the lab does not run %s: the lab has no image, and no program but PROGRAM=.",
		strings.Join(names, ", "))
}

// leftOutWorkloads returns a sentence about the other workloads of the manifests, if there are any.
func (w *workload) leftOutWorkloads() string {
	var names []string
	for _, u := range w.ofKinds("Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Pod") {
		if u != w.object {
			names = append(names, u.GetKind()+" "+u.GetName())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("Of MANIFEST=, the lab does not run %s.", strings.Join(names, ", "))
}

// shared returns the folder of an empty volume that an init container mounts. The result is empty for other volumes.
func (k *kubelet) shared(volume string) string {
	for _, c := range k.initContainers() {
		if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume }) {
			return filepath.Join(k.dir, volume)
		}
	}
	return ""
}

// initialize runs the init containers, one after the other.
func (o *operator) initialize(ctx context.Context, served bool) error {
	if o.target.workload == nil || o.pod == "" {
		return nil
	}
	for _, c := range o.target.workload.initContainers() {
		one := *o.target.workload
		one.container = c
		described, err := o.read(ctx, &one, served)
		if err != nil {
			return fmt.Errorf("the init container %s: %w", c.Name, err)
		}
		program, err := o.programIn(&one, described, described.args)
		if err != nil {
			return fmt.Errorf("the init container %s: %w", c.Name, err)
		}
		p, err := o.fixture.Run(program)
		if err != nil {
			return fmt.Errorf("the init container %s: %w", c.Name, err)
		}
		within, cancel := o.clock.Within(ctx, initTime, clock.ErrLate)
		select {
		case <-p.Ended():
		case <-within.Done():
			p.Kill()
		}
		cancel()
		if exit := p.Exit(); exit.Code != 0 {
			return fmt.Errorf("the init container %s %v within %v%s", c.Name, exit, initTime, words(p))
		}
	}
	return nil
}
