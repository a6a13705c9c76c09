// Package servers starts a real Redis and a real PostgreSQL for live runs, in
// containers or as processes, and guarantees that nothing of them is left behind.
//
// Whatever happens to this program, the reaper (package reaper) removes what Start
// made; so main and TestMain must call role.RunIfAsked first.
package servers

import (
	"maps"
	"slices"
	"strings"
)

// Backend is a way to run the servers.
type Backend string

// The backends there are.
const (
	Container Backend = "container" // through a docker daemon
	Process   Backend = "process"   // redis-server and postgres installed on this machine
)

// Names of the variables that steer the choice of a backend.
const (
	EnvLive          = "STOCKPROOF_LIVE"           // off: leave live runs out
	EnvBackend       = "STOCKPROOF_BACKEND"        // container or process: only that one
	EnvRedisImage    = "STOCKPROOF_REDIS_IMAGE"    // image with redis-server
	EnvPostgresImage = "STOCKPROOF_POSTGRES_IMAGE" // image with postgres
)

// Default images. The local one is made by scripts/build-image.sh and is used when
// the official one is neither present nor named.
const (
	RedisImage    = "redis:7"
	PostgresImage = "postgres:15"
	LocalImage    = "stockproof-local:bookworm"
)

// Persistence says what Redis writes to disk.
type Persistence string

// The persistence settings a restart is judged under.
const (
	NoPersistence Persistence = "none"
	RDBOnly       Persistence = "rdb"
	AOFEverySec   Persistence = "aof-everysec"
	AOFAlways     Persistence = "aof-always"
)

// Options adapts the servers; the zero value is what a live run wants.
type Options struct {
	// Session marks containers, volumes and folders as ours. Empty: a random name.
	Session string
	// RedisImage and PostgresImage name images; empty: from the environment, then
	// the official one, then the local one. They count in the container backend only.
	RedisImage, PostgresImage string
	// Persistence of Redis; empty: none.
	Persistence Persistence
	// RedisSettings and PostgresSettings are added to the configuration and win
	// over it. Start refuses a PostgreSQL that does not sync to disk all the same.
	RedisSettings, PostgresSettings map[string]string
	// Path lists the folders to look for programs in, as in $PATH; empty: $PATH and
	// the places where Debian puts PostgreSQL.
	Path string
}

// redisArgs is the command line of redis-server after its own name, without what
// depends on the backend. Each setting may replace an earlier one.
func (o Options) redisArgs() []string {
	args := []string{"--appendonly", "no", "--save", "", "--daemonize", "no", "--logfile", ""}
	switch o.Persistence {
	case RDBOnly:
		args = append(args, "--save", "3600 1 300 100 60 10000") // the server's own default
	case AOFEverySec:
		args = append(args, "--appendonly", "yes", "--appendfsync", "everysec")
	case AOFAlways:
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	}
	for _, name := range slices.Sorted(maps.Keys(o.RedisSettings)) {
		args = append(args, "--"+name, o.RedisSettings[name])
	}
	return args
}

// postgresArgs is the command line of postgres after its own name, without what
// depends on the backend.
func (o Options) postgresArgs() []string {
	settings := map[string]string{
		"fsync":              "on", // a verdict on a server that may lose commits is worthless
		"synchronous_commit": "on",
		"full_page_writes":   "on",
		"max_connections":    "300", // many clients, each with a pool
		"logging_collector":  "off",
		"log_destination":    "stderr",
		"lc_messages":        "C", // readiness is read from the log
		"timezone":           "UTC",
	}
	maps.Copy(settings, o.PostgresSettings)
	var args []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

// validPersistence reports whether p is one of the known settings.
func validPersistence(p Persistence) bool {
	switch p {
	case "", NoPersistence, RDBOnly, AOFEverySec, AOFAlways:
		return true
	}
	return false
}

// validSession reports whether s can be part of a folder's name and of a label.
func validSession(s string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	return s != "" && len(s) <= 64 && strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune(allowed, r) }) < 0
}
