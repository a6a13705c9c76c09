package cost

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// benchmarkProgram comes with redis-server.
const benchmarkProgram = "redis-benchmark"

// ErrNoBenchmark says that redis-benchmark is not installed, so the load driver has
// nothing to be compared with.
var ErrNoBenchmark = errors.New(benchmarkProgram + " is not installed")

// redisBenchmark measures the script that the driver is compared by: requests per
// second of so many connections.
func (s *servers) redisBenchmark(ctx context.Context, connections, requests int) (rate float64, err error) {
	program, err := exec.LookPath(benchmarkProgram)
	if err != nil {
		return 0, ErrNoBenchmark
	}
	key := slowKey(s.name())
	if err := slowTake.Load(ctx, s.redis).Err(); err != nil {
		return 0, err
	}
	if err := s.redis.Set(ctx, key, requests, 0).Err(); err != nil {
		return 0, err
	}
	host, port, err := net.SplitHostPort(s.set.RedisAddr)
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, program, "-h", host, "-p", port, "-c", strconv.Itoa(connections), "-n", strconv.Itoa(requests), "--csv",
		"EVALSHA", slowTake.Hash(), "1", key, "1", "0")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %s", benchmarkProgram, err, out)
	}
	left, err := s.redis.Get(ctx, key).Int64()
	if err != nil {
		return 0, err
	}
	if left > int64(connections) { // it rounds what each connection sends
		return 0, fmt.Errorf("%w: %s sent %d requests and left %d units", ErrUnsound, benchmarkProgram, requests, left)
	}
	return benchmarkRate(string(out))
}

// benchmarkRate reads requests per second from the CSV, "test","rps",… and a row.
func benchmarkRate(text string) (float64, error) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", benchmarkProgram, err)
	}
	if len(rows) != 2 || len(rows[0]) < 2 || rows[0][1] != "rps" {
		return 0, fmt.Errorf("%s: no column rps: %q", benchmarkProgram, text)
	}
	return strconv.ParseFloat(rows[1][1], 64)
}
