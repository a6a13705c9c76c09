package sqlsubset_test

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if pg.server != nil {
		if err := pg.server.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop postgres:", err)
			code = max(code, 1)
		}
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// pg is the one server of this test binary.
var pg struct {
	once   sync.Once
	server *postgres
	err    error
}

type postgres struct {
	dir   string
	shell *exec.Cmd
	stdin io.Closer
	done  chan struct{} // closed when the shell has ended
}

// A shell stands between the test binary and the server: its standard input
// ends when the binary does, however that happens, and then it ends the server
// and removes the folder.
const keeper = `
initdb=$1 postgres=$2 dir=$3
"$initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C --no-sync >"$dir/log" 2>&1 &&
"$postgres" -D "$dir/data" -c listen_addresses= -c unix_socket_directories="$dir" -c unix_socket_permissions=0700 \
	-c fsync=on -c synchronous_commit=off -c deadlock_timeout=20ms >>"$dir/log" 2>&1 &
server=$!
cat >/dev/null
kill -INT $server
wait $server
rm -rf "$dir"
`

// realPostgres answers how to connect to a real server of this binary's own.
// Without PostgreSQL on the machine the test fails, unless STOCKPROOF_LIVE=off.
func realPostgres(t testing.TB) func(context.Context) (*pgx.Conn, error) {
	t.Helper()
	if os.Getenv("STOCKPROOF_LIVE") == "off" {
		t.Skip("left out: STOCKPROOF_LIVE=off")
	}
	pg.once.Do(func() { pg.server, pg.err = startPostgres() })
	require.NoError(t, pg.err, "a real PostgreSQL is needed to hold the engine against it: install it, or set STOCKPROOF_LIVE=off")
	return pg.server.connect
}

func (p *postgres) connect(ctx context.Context) (*pgx.Conn, error) {
	return pgx.Connect(ctx, p.dsn())
}

func (p *postgres) dsn() string {
	return "host=" + p.dir + " user=postgres dbname=postgres sslmode=disable"
}

func program(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("no %s on PATH: %w", name, exec.ErrNotFound)
	}
	return found[len(found)-1], nil
}

func startPostgres() (*postgres, error) {
	initdb, err := program("initdb")
	if err != nil {
		return nil, err
	}
	server, err := program("postgres")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "sqlsubset-pg-")
	if err != nil {
		return nil, err
	}
	p := &postgres{dir: dir, shell: exec.Command("/bin/sh", "-c", keeper, "keeper", initdb, server, dir), done: make(chan struct{})}
	p.shell.Dir = dir
	p.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 { // postgres refuses to run as root
		who, err := user.Lookup("postgres")
		if err != nil {
			if who, err = user.Lookup("nobody"); err != nil {
				return nil, errors.Join(err, os.RemoveAll(dir))
			}
		}
		uid, _ := strconv.Atoi(who.Uid)
		gid, _ := strconv.Atoi(who.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		p.shell.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	if p.stdin, err = p.shell.StdinPipe(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := p.shell.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	go func() { defer close(p.done); _ = p.shell.Wait() }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		conn, err := p.connect(ctx)
		if err == nil {
			return p, conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			return nil, errors.Join(fmt.Errorf("postgres did not come up: %w; its log:\n%s", err, strings.TrimSpace(string(log))), p.stop())
		case <-time.After(20 * time.Millisecond): // between two attempts to connect
		}
	}
}

func (p *postgres) stop() error {
	p.stdin.Close()
	<-p.done
	if _, err := os.Stat(p.dir); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(fmt.Errorf("%s is still there", p.dir), os.RemoveAll(p.dir))
	}
	return nil
}
