package wire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// One server of each kind serves all tests of this package; TestMain ends them.
var (
	redisServer    = sync.OnceValues(startRedis)
	postgresServer = sync.OnceValues(startPostgres)
	stopServers    []func()
	stopMu         sync.Mutex
)

func atExit(f func()) {
	stopMu.Lock()
	defer stopMu.Unlock()
	stopServers = append(stopServers, f)
}

func TestMain(m *testing.M) {
	code := m.Run()
	for i := len(stopServers) - 1; i >= 0; i-- {
		stopServers[i]()
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

const offMessage = "STOCKPROOF_LIVE=off: tests against real servers are left out"

func needRedis(t testing.TB) string {
	t.Helper()
	return need(t, redisServer, "redis-server")
}

func needPostgres(t testing.TB) string {
	t.Helper()
	return need(t, postgresServer, "postgres")
}

func need(t testing.TB, start func() (string, error), what string) string {
	t.Helper()
	if os.Getenv("STOCKPROOF_LIVE") == "off" {
		t.Skip(offMessage)
	}
	addr, err := start()
	require.NoErrorf(t, err, "a real %s is needed; install it, or set STOCKPROOF_LIVE=off to leave these tests out", what)
	return addr
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func startRedis() (string, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return "", err
	}
	port, err := freePort()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "wire-redis-")
	if err != nil {
		return "", err
	}
	atExit(func() { os.RemoveAll(dir) })
	cmd := exec.Command(path, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--dir", dir, "--daemonize", "no")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	atExit(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	db := redis.NewClient(&redis.Options{Addr: addr})
	defer db.Close()
	return addr, until(func(ctx context.Context) error { return db.Ping(ctx).Err() })
}

// until tries for half a minute; a server that needs longer is broken.
func until(try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}

const postgresPassword = "secret of this test"

func startPostgres() (string, error) {
	bin := map[string]string{}
	for _, name := range []string{"initdb", "postgres"} {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", err
		}
		// initdb looks for postgres beside itself.
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return "", err
		}
		bin[name] = path
	}
	port, err := freePort()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "wire-postgres-")
	if err != nil {
		return "", err
	}
	atExit(func() { os.RemoveAll(dir) })
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte(postgresPassword), 0o600); err != nil {
		return "", err
	}
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 { // postgres refuses to run as root
		u, err := user.Lookup("postgres")
		if err != nil {
			if u, err = user.Lookup("nobody"); err != nil {
				return "", err
			}
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Chown(path, uid, gid))
		})
		if err != nil {
			return "", err
		}
	}
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(bin[name], args...)
		cmd.Dir, cmd.SysProcAttr = dir, attr
		cmd.Env = append(os.Environ(), "HOME="+dir)
		return cmd
	}
	data := filepath.Join(dir, "data")
	if out, err := run("initdb", "-D", data, "-U", "postgres", "-A", "scram-sha-256", "--pwfile", password, "-N").CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb: %w: %s", err, out)
	}
	cmd := run("postgres", "-D", data, "-k", "", "-h", "127.0.0.1", "-p", strconv.Itoa(port))
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		return "", err
	}
	atExit(func() { _ = cmd.Process.Signal(syscall.SIGQUIT); _ = cmd.Wait() })
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	return addr, until(func(ctx context.Context) error {
		c, err := pgx.Connect(ctx, postgresURL(addr))
		if err != nil {
			return err
		}
		return c.Close(ctx)
	})
}

func postgresURL(addr string) string {
	return fmt.Sprintf("postgres://postgres:%s@%s/postgres", strings.ReplaceAll(postgresPassword, " ", "%20"), addr)
}
