package reaper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// Times of the search for containers of a parent that is gone. A container that
// was being created then appears in the list only when the daemon is done with it.
const (
	containersEvery = 200 * time.Millisecond
	containersQuiet = 5 * time.Second  // give up looking after nothing was seen for so long
	containersLimit = 60 * time.Second // and in any case after this
)

// ContainersLeft lists the ids of containers and the names of volumes that carry
// label on the docker daemon at host (empty: what the environment says).
func ContainersLeft(ctx context.Context, host, label string) (containers, volumes []string, err error) {
	docker, err := dockerClient(host)
	if err != nil {
		return nil, nil, err
	}
	defer docker.Close()
	return listLabelled(ctx, docker, label)
}

// RemoveContainers removes all containers and volumes that carry label now, and
// returns how many there were. Containers are killed, not asked: what they hold is
// thrown away with them.
func RemoveContainers(ctx context.Context, host, label string) (int, error) {
	docker, err := dockerClient(host)
	if err != nil {
		return 0, err
	}
	defer docker.Close()
	return removeLabelled(ctx, docker, label)
}

func dockerClient(host string) (*client.Client, error) {
	opts := []client.Opt{client.FromEnv}
	if host != "" {
		opts = append(opts, client.WithHost(host))
	}
	docker, err := client.New(opts...)
	if err != nil {
		return nil, fmt.Errorf("docker: %w", err)
	}
	return docker, nil
}

func listLabelled(ctx context.Context, docker *client.Client, label string) (containers, volumes []string, err error) {
	filters := make(client.Filters).Add("label", label)
	found, err := docker.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filters})
	if err != nil {
		return nil, nil, fmt.Errorf("docker: list containers: %w", err)
	}
	for _, c := range found.Items {
		containers = append(containers, c.ID)
	}
	disks, err := docker.VolumeList(ctx, client.VolumeListOptions{Filters: filters})
	if err != nil {
		return nil, nil, fmt.Errorf("docker: list volumes: %w", err)
	}
	for _, v := range disks.Items {
		volumes = append(volumes, v.Name)
	}
	return containers, volumes, nil
}

func removeLabelled(ctx context.Context, docker *client.Client, label string) (int, error) {
	containers, volumes, err := listLabelled(ctx, docker, label)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, id := range containers {
		_, err := docker.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("docker: remove container %.12s: %w", id, err))
		}
	}
	for _, name := range volumes {
		_, err := docker.VolumeRemove(ctx, name, client.VolumeRemoveOptions{Force: true})
		if err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("docker: remove volume %.12s: %w", name, err))
		}
	}
	return len(containers) + len(volumes), errors.Join(errs...)
}

// endContainers removes what carries label until nothing was seen for a while.
func endContainers(host, label string) error {
	ctx, cancel := context.WithTimeout(context.Background(), containersLimit)
	defer cancel()
	docker, err := dockerClient(host)
	if err != nil {
		return err
	}
	defer docker.Close()
	ticker := time.NewTicker(containersEvery)
	defer ticker.Stop()
	var last error
	quiet := time.Now()
	for time.Since(quiet) < containersQuiet {
		n, err := removeLabelled(ctx, docker, label)
		if n > 0 || err != nil {
			quiet = time.Now()
		}
		last = err // one attempt may fail while the daemon still starts the container
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.Join(last, ctx.Err())
		}
	}
	return last
}
