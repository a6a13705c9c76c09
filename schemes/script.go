package schemes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"stockproof/model"
)

// deductByScript runs a script that answers 1 (deducted) or 0 (too few left).
// Script.Run sends EVALSHA and falls back to EVAL when the server does not
// know the script.
func deductByScript(ctx context.Context, env Env, script *redis.Script, keys []string, args ...any) (model.Outcome, error) {
	if env.Config.Replicas > 0 {
		return deductAndWait(ctx, env, script, keys, args...)
	}
	done, err := script.Run(ctx, env.Redis, keys, args...).Int64()
	if err != nil {
		return afterRedis(env, err), err
	}
	if done == 1 {
		return model.Sold, nil
	}
	return model.SoldOut, nil
}

// waitTimeout is how long WAIT waits for the replicas, in milliseconds where the
// configuration names no patience.
const waitTimeout = 100 * time.Millisecond

// ErrNotReplicated: the deduction is on the primary, and not on enough replicas
// to be promised. A failover may undo it, so it is neither sold nor given back.
var ErrNotReplicated = errors.New("not acknowledged by enough replicas")

// deductAndWait is deductByScript with WAIT before the answer. Both go over one
// connection: WAIT speaks of the writes of its own.
func deductAndWait(ctx context.Context, env Env, script *redis.Script, keys []string, args ...any) (model.Outcome, error) {
	conn := env.Redis.Conn()
	defer conn.Close()
	done, err := script.Run(ctx, conn, keys, args...).Int64()
	if err != nil {
		return afterRedis(env, err), err
	}
	if done != 1 {
		return model.SoldOut, nil
	}
	have, err := conn.Wait(ctx, env.Config.Replicas, or(env.Config.Wait, waitTimeout)).Result()
	if err != nil {
		return model.Unknown, err
	}
	if have < int64(env.Config.Replicas) {
		return model.Unknown, fmt.Errorf("%w: %d of %d", ErrNotReplicated, have, env.Config.Replicas)
	}
	return model.Sold, nil
}

// scriptNames maps the SHA-1 that EVALSHA sends to a name for people.
var scriptNames = map[string]string{}

// named gives a script a name for reports and schedules.
func named(name, source string) *redis.Script {
	s := redis.NewScript(source)
	scriptNames[s.Hash()] = name
	return s
}

// NameScript gives a script that a library sends a name, by its SHA-1. untold are
// the places, among keys and arguments from 0, of what schedules do not tell.
func NameScript(sha, name string, untold ...int) {
	scriptNames[sha], scriptUntold[sha] = name, untold
}

// scriptUntold maps the SHA-1 of a script to what schedules do not tell.
var scriptUntold = map[string][]int{}

// ScriptWords are the keys and arguments of a script as a schedule tells them.
func ScriptWords(sha string, words []string) []string {
	untold := scriptUntold[sha]
	var told []string
	for i, w := range words {
		if !slices.Contains(untold, i) {
			told = append(told, w)
		}
	}
	return told
}

// ScriptName is the name of a script by its SHA-1; empty for one that has none.
func ScriptName(sha string) string { return scriptNames[sha] }
