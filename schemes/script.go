package schemes

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"stockproof/model"
)

// deductByScript runs a script that answers 1 (deducted) or 0 (too few left).
// Script.Run sends EVALSHA and falls back to EVAL when the server does not
// know the script.
func deductByScript(ctx context.Context, env Env, script *redis.Script, keys []string, args ...any) (model.Outcome, error) {
	done, err := script.Run(ctx, env.Redis, keys, args...).Int64()
	if err != nil {
		return afterRedis(env, err), err
	}
	if done == 1 {
		return model.Sold, nil
	}
	return model.SoldOut, nil
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
