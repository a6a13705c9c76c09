package schemes

import "github.com/redis/go-redis/v9"

// Scripts names the Lua scripts of this package by the SHA1 under which Redis
// caches them, so that a report can say redisson_acquire instead of 40 digits.
func Scripts() map[string]string {
	names := map[string]string{}
	for name, s := range map[string]*redis.Script{
		"lua_hash":         luaHashScript,
		"lua_string":       luaStringScript,
		"redisson_acquire": redissonAcquire,
		"redisson_release": redissonRelease,
		"redisson_renew":   redissonRenew,
	} {
		names[s.Hash()] = name
	}
	return names
}
