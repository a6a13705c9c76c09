package servers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// programs are the executables of the process backend.
type programs struct {
	redisServer, postgres, initdb string
}

// ErrNoProgram says that a program is not installed.
var ErrNoProgram = errors.New("not found")

// findPrograms looks through path (as $PATH; empty: $PATH, then the folders where
// Debian keeps PostgreSQL, the newest first). postgres and initdb are taken from
// the same folder, because two releases do not mix.
func findPrograms(path string) (programs, error) {
	var dirs []string
	if path == "" {
		dirs = filepath.SplitList(os.Getenv("PATH"))
		debian, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // fails only for a bad pattern
		slices.SortFunc(debian, func(a, b string) int { return release(b) - release(a) })
		dirs = append(dirs, debian...)
	} else {
		dirs = filepath.SplitList(path)
	}
	var p programs
	var missing []string
	for _, dir := range dirs {
		if p.redisServer == "" {
			p.redisServer = executable(dir, "redis-server")
		}
		if postgres, initdb := executable(dir, "postgres"), executable(dir, "initdb"); p.postgres == "" && postgres != "" && initdb != "" {
			p.postgres, p.initdb = postgres, initdb
		}
	}
	if p.redisServer == "" {
		missing = append(missing, "redis-server")
	}
	if p.postgres == "" {
		missing = append(missing, "postgres with initdb beside it")
	}
	if missing != nil {
		return programs{}, fmt.Errorf("%s: %w on PATH", strings.Join(missing, " and "), ErrNoProgram)
	}
	return p, nil
}

// release is the number in /usr/lib/postgresql/15/bin, 0 when there is none.
func release(dir string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
	return n
}

func executable(dir, name string) string {
	path, err := exec.LookPath(filepath.Join(dir, name))
	if dir == "" || err != nil {
		return ""
	}
	if path, err = filepath.Abs(path); err != nil {
		return ""
	}
	return path
}

// account is a user to run a server as.
type account struct {
	uid, gid uint32
}

// unprivileged says which user a server runs as: this one (nil), unless this one is
// root. PostgreSQL refuses root, and a Redis without a password on a port every
// local user can reach must not be able to write root's files.
func unprivileged(preferred string) (*account, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{preferred, "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil && uid != 0 {
			return &account{uid: uint32(uid), gid: uint32(gid)}, nil
		}
	}
	return nil, fmt.Errorf("this program runs as root and there is neither a user %s nor nobody to run the server as", preferred)
}
