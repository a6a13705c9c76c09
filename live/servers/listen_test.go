package servers_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// listener is a line of /proc/net/tcp or tcp6 in state LISTEN.
type listener struct {
	addr  string // hexadecimal, in the machine's byte order
	port  int
	inode string
}

const loopback = "0100007F" // 127.0.0.1

func listeners(t *testing.T) []listener {
	t.Helper()
	var all []listener
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		raw, err := os.ReadFile(file)
		if os.IsNotExist(err) { // a machine without IPv6
			continue
		}
		require.NoError(t, err)
		for line := range strings.Lines(string(raw)) {
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != "0A" {
				continue
			}
			addr, hexPort, _ := strings.Cut(f[1], ":")
			port, err := strconv.ParseUint(hexPort, 16, 16)
			require.NoError(t, err)
			all = append(all, listener{addr, int(port), f[9]})
		}
	}
	return all
}

// sockets lists the socket inodes the processes hold.
func sockets(pids []int) map[string]bool {
	inodes := map[string]bool{}
	for _, pid := range pids {
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, link := range links {
			at, _ := os.Readlink(link)
			if inode, ok := strings.CutPrefix(at, "socket:["); ok {
				inodes[strings.TrimSuffix(inode, "]")] = true
			}
		}
	}
	return inodes
}

// exposed returns the listeners that belong to the ports or sockets given, divided
// into those on 127.0.0.1 and all others.
func exposed(t *testing.T, ports map[int]bool, inodes map[string]bool) (inside, outside []listener) {
	t.Helper()
	for _, l := range listeners(t) {
		switch {
		case !ports[l.port] && !inodes[l.inode]:
		case l.addr == loopback:
			inside = append(inside, l)
		default:
			outside = append(outside, l)
		}
	}
	return inside, outside
}

func portOf(t *testing.T, addr string) int {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", host)
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	return n
}

// A mutant: a server on every address must be seen by the check above.
func TestAListenerForEverybodyIsSeen(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", "[::]:0"} {
		l, err := net.Listen("tcp", addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		_, outside := exposed(t, map[int]bool{l.Addr().(*net.TCPAddr).Port: true}, nil)
		require.Len(t, outside, 1, addr)
		_, outside = exposed(t, nil, sockets([]int{os.Getpid()}))
		require.NotEmpty(t, outside, addr)
	}
}
