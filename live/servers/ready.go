package servers

import "strings"

// redisReady recognises the line after which Redis accepts connections.
func redisReady() func(string) bool {
	return func(line string) bool { return strings.Contains(line, "Ready to accept connections") }
}

// sentinelReady recognises the line that a sentinel writes when it listens: it has
// none about connections.
func sentinelReady() func(string) bool {
	return func(line string) bool { return strings.Contains(line, "Sentinel ID is") }
}

// postgresReady recognises the line after which PostgreSQL accepts connections on
// TCP. The official image first runs a server without TCP to set itself up, and
// that one says "ready" as well, so a line about the address must have come before.
func postgresReady() func(string) bool {
	listens := false
	return func(line string) bool {
		if strings.Contains(line, "listening on IPv4 address") {
			listens = true
		}
		return listens && strings.Contains(line, "database system is ready to accept connections")
	}
}
