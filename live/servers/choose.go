package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
)

// Limits of the questions to the docker daemon; the choice of a backend should not
// be felt.
const (
	dockerLimit   = 5 * time.Second
	registryLimit = 10 * time.Second
)

// Choice is a backend and why.
type Choice struct {
	Backend Backend
	// Why says in words what was found and what was not, for the top of a report.
	Why string
}

// Choose decides on a backend, container first. It returns [ErrLiveOff] when live
// runs are switched off, *BadValueError for a setting that means nothing, and
// *NoBackendError when there is nothing to run the servers with.
func Choose(ctx context.Context, getenv func(string) string) (Choice, error) {
	switch v := getenv(EnvLive); v {
	case "", "on":
	case "off":
		return Choice{}, ErrLiveOff
	default:
		return Choice{}, &BadValueError{Name: EnvLive, Value: v, Allowed: []string{"on", "off"}}
	}
	var candidates []Backend
	forced := getenv(EnvBackend)
	switch Backend(forced) {
	case "":
		candidates = []Backend{Container, Process}
	case Container, Process:
		candidates = []Backend{Backend(forced)}
	default:
		return Choice{}, badBackend(forced)
	}
	none := &NoBackendError{}
	for _, b := range candidates {
		why, err := available(ctx, b, getenv)
		if err != nil {
			none.Reasons = append(none.Reasons, Reason{b, err})
			continue
		}
		for _, r := range none.Reasons {
			why += fmt.Sprintf("; not %s: %v", r.Backend, r.Why)
		}
		if forced != "" {
			why += "; asked for by " + EnvBackend
		}
		return Choice{Backend: b, Why: why}, nil
	}
	return Choice{}, none
}

// Available returns nil when the backend can be used here, or says why not.
func Available(ctx context.Context, b Backend, getenv func(string) string) error {
	_, err := available(ctx, b, getenv)
	return err
}

func available(ctx context.Context, b Backend, getenv func(string) string) (why string, err error) {
	switch b {
	case Process:
		found, err := findPrograms("")
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("process: %s and %s", found.redisServer, found.postgres), nil
	case Container:
		found, err := findImages(ctx, Options{}, getenv)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("container: images %s and %s", found.redis, found.postgres), nil
	}
	return "", badBackend(string(b))
}

// EnvRequire names the variable that lists backends ("container,process") without
// which a test run must fail; a gate sets it so that nothing goes missing unnoticed.
const EnvRequire = "STOCKPROOF_REQUIRE"

// Backends lists the backends tests should run on: the forced one, or all that can
// be used here, with the reasons why others cannot. The errors are those of
// [Choose]; a backend that is required and missing is *NoBackendError too.
func Backends(ctx context.Context, getenv func(string) string) (usable []Backend, missing []Reason, err error) {
	choice, err := Choose(ctx, getenv)
	if err != nil {
		return nil, nil, err
	}
	var required []Backend
	for name := range strings.SplitSeq(getenv(EnvRequire), ",") {
		switch b := Backend(strings.TrimSpace(name)); b {
		case "":
		case Container, Process:
			required = append(required, b)
		default:
			return nil, nil, &BadValueError{Name: EnvRequire, Value: string(b), Allowed: []string{string(Container), string(Process)}}
		}
	}
	if getenv(EnvBackend) != "" {
		return []Backend{choice.Backend}, nil, nil
	}
	for _, b := range []Backend{Container, Process} {
		err := Available(ctx, b, getenv)
		switch {
		case err == nil:
			usable = append(usable, b)
		case slices.Contains(required, b):
			return nil, nil, &NoBackendError{Reasons: []Reason{{b, err}}}
		default:
			missing = append(missing, Reason{b, err})
		}
	}
	return usable, missing, nil
}

func badBackend(v string) error {
	return &BadValueError{Name: EnvBackend, Value: v, Allowed: []string{string(Container), string(Process)}}
}

// images are what the container backend runs.
type images struct {
	host            string // of the docker daemon
	redis, postgres string
	pull            bool // at least one is not here yet
}

var prepareOnce sync.Once

// prepareTestcontainers sets what the library reads from the environment, unless
// somebody has: our own reaper cleans up, so its helper container is not needed,
// and a daemon on this machine is reached by number. The name localhost may lead to
// an IPv6 address that no port is mapped on.
func prepareTestcontainers() {
	prepareOnce.Do(func() {
		for name, value := range map[string]string{
			"TESTCONTAINERS_RYUK_DISABLED": "true",
			"TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1",
		} {
			if _, set := os.LookupEnv(name); !set {
				_ = os.Setenv(name, value) // fails only for a malformed name
			}
		}
		tclog.SetDefault(tclog.NewNoopLogger()) // results go to standard output, progress is ours
	})
}

// ErrNoDocker says that no docker daemon answers.
var ErrNoDocker = errors.New("no docker daemon answers")

// ErrNoImage says that an image is neither present nor can be pulled.
var ErrNoImage = errors.New("image is neither present nor can be pulled")

// findImages finds a docker daemon and an image for each role.
func findImages(ctx context.Context, opt Options, getenv func(string) string) (images, error) {
	prepareTestcontainers()
	ask, cancel := context.WithTimeout(ctx, dockerLimit)
	defer cancel()
	// The library quietly goes on to another daemon when the one named does not
	// answer; whoever names one wants that one.
	if named := os.Getenv("DOCKER_HOST"); named != "" {
		if err := pingDocker(ask); err != nil {
			return images{}, fmt.Errorf("%w at DOCKER_HOST=%s: %w", ErrNoDocker, named, err)
		}
	}
	tc, err := testcontainers.NewDockerClientWithOpts(ask)
	if err != nil {
		return images{}, fmt.Errorf("%w: %w", ErrNoDocker, err)
	}
	defer tc.Close()
	if _, err := tc.Ping(ask, client.PingOptions{}); err != nil {
		return images{}, fmt.Errorf("%w: %w", ErrNoDocker, err)
	}
	found := images{host: tc.DaemonHost()}
	for _, role := range []struct {
		into            *string
		named, official string
	}{
		{&found.redis, firstOf(opt.RedisImage, getenv(EnvRedisImage)), RedisImage},
		{&found.postgres, firstOf(opt.PostgresImage, getenv(EnvPostgresImage)), PostgresImage},
	} {
		name, pull, err := findImage(ctx, tc.Client, role.named, role.official)
		if err != nil {
			return images{}, err
		}
		*role.into = name
		found.pull = found.pull || pull
	}
	return found, nil
}

// pingDocker asks the daemon the environment names.
func pingDocker(ctx context.Context) error {
	docker, err := client.New(client.FromEnv)
	if err != nil {
		return err
	}
	defer docker.Close()
	_, err = docker.Ping(ctx, client.PingOptions{})
	return err
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// findImage decides on one image: the named one and no other, or else the official
// one if it is here, the local one if it is here, the official one if it can be pulled.
func findImage(ctx context.Context, docker *client.Client, named, official string) (name string, pull bool, err error) {
	wanted := []string{official, LocalImage}
	if named != "" {
		wanted = []string{named}
	}
	ask, cancel := context.WithTimeout(ctx, dockerLimit)
	defer cancel()
	for _, name := range wanted {
		_, err := docker.ImageInspect(ask, name)
		if err == nil {
			return name, false, nil
		}
		if !errdefs.IsNotFound(err) {
			return "", false, fmt.Errorf("look for image %s: %w", name, err)
		}
	}
	// Asks the registry for the description only.
	askFar, cancelFar := context.WithTimeout(ctx, registryLimit)
	defer cancelFar()
	if _, err := docker.DistributionInspect(askFar, wanted[0], client.DistributionInspectOptions{}); err != nil {
		return "", false, fmt.Errorf("%s: %w (looked for %s here): %w", wanted[0], ErrNoImage, strings.Join(wanted, ", "), err)
	}
	return wanted[0], true, nil
}
